"""Qwen3 training in MLX, float32: the path for Macs, and the one that the test runs."""

from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_flatten
from mlx_lm.models.qwen3 import Model, ModelArgs

from models.config import Recipe, Shape


def build_model(shape: Shape, weights: dict[str, np.ndarray]) -> Model:
    """mlx-lm's Qwen3 of `shape` with `weights` by Hugging Face name."""
    args = ModelArgs.from_dict(shape.hugging_face({"<|im_end|>": 0, "<|endoftext|>": 0}))
    model = Model(args)
    model.load_weights([(name, mx.array(w)) for name, w in weights.items()])
    return model


def weighted_loss(model: Model, ids: mx.array, weights: mx.array) -> mx.array:
    """Mean cross-entropy of `ids` `[B, L + 1]`, each predicted token counted by its weight."""
    losses = nn.losses.cross_entropy(model(ids[:, :-1]), ids[:, 1:])
    return (losses * weights[:, 1:]).sum() / weights[:, 1:].sum()


def is_layer_matrix(name: str, weight: mx.array) -> bool:
    """Whether Muon updates this weight; embeddings and norms are AdamW's."""
    return weight.ndim == 2 and "embed" not in name


class MLXTrainer:
    """Model and optimizers; `step` is one update."""

    def __init__(self, shape: Shape, recipe: Recipe, weights: dict[str, np.ndarray]) -> None:
        self.recipe = recipe
        self.model = build_model(shape, weights)
        self.muon = optim.Muon(recipe.muon_rate, momentum=0.95, weight_decay=recipe.weight_decay)
        self.adam = optim.AdamW(recipe.adam_rate, betas=[0.9, 0.95], weight_decay=0.0)
        self.optimizer = optim.MultiOptimizer([self.muon, self.adam], [is_layer_matrix])
        self.optimizer.init(self.model.trainable_parameters())
        state = [self.model.state, self.optimizer.state]
        update = partial(mx.compile, inputs=state, outputs=state)(self._update) if recipe.compile else self._update
        self.update, self.state = update, state

    def _update(self, ids: mx.array, weights: mx.array) -> mx.array:
        loss, grads = nn.value_and_grad(self.model, weighted_loss)(self.model, ids, weights)
        grads, _ = optim.clip_grad_norm(grads, 1.0)
        self.optimizer.update(self.model, grads)
        return loss

    def step(self, ids: np.ndarray, weights: np.ndarray, rate: float) -> float:
        """One update on `ids`, `weights` `[B, L + 1]`; `rate` in 0..1 scales the learning rates. Returns the loss."""
        self.muon.learning_rate = self.recipe.muon_rate * rate
        self.adam.learning_rate = self.recipe.adam_rate * rate
        loss = self.update(mx.array(ids), mx.array(weights))
        mx.eval(loss, self.state)
        return loss.item()

    def loss(self, ids: np.ndarray, weights: np.ndarray) -> float:
        """Weighted mean loss without an update."""
        return weighted_loss(self.model, mx.array(ids), mx.array(weights)).item()

    def weights(self) -> dict[str, np.ndarray]:
        """The weights by Hugging Face name, float32."""
        return {name: np.array(w) for name, w in tree_flatten(self.model.parameters())}
