"""What the operations cost, packed weights, and kernels of our own."""
