"""A learner's source file as text, and back to bytes: whatever is not edited comes back byte for byte."""

import io
import re
import tokenize
from dataclasses import dataclass, replace


class NoText(Exception):
    """The bytes are no source text in the encoding that they claim."""


@dataclass(frozen=True)
class Text:
    """`body` has plain line ends where all ends are alike; `newline` is what they are in the file."""

    body: str
    encoding: str
    errors: str
    newline: str

    @classmethod
    def of(cls, content: bytes, name: str) -> "Text":
        """Decode a file as its language does. Raises NoText."""
        errors = "strict" if name.endswith(".py") else "surrogateescape"  # C++ compilers pass any bytes on
        try:
            encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0] if name.endswith(".py") else "utf-8"
            body = content.decode(encoding, errors)
        except (SyntaxError, UnicodeDecodeError, LookupError) as error:
            raise NoText(str(error)) from None
        if name.endswith(".py") and re.search(r"\r(?!\n)", body):
            raise NoText("some lines end with a carriage return alone")
        if body.count("\r\n") and body.count("\r\n") == body.count("\n"):
            return cls(body.replace("\r\n", "\n"), encoding, errors, "\r\n")
        return cls(body, encoding, errors, "\n")

    def with_body(self, body: str) -> "Text":
        return replace(self, body=body)

    def content(self) -> bytes:
        """Raises NoText where the encoding lacks a character."""
        try:
            return self.body.replace("\n", self.newline).encode(self.encoding, self.errors)
        except UnicodeEncodeError as error:
            raise NoText(str(error)) from None
