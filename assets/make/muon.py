"""Muon, the optimizer for the matrices of the layers: momentum whose direction is made orthogonal (Jordan et al., 2024).

Written for a CPU: f32 throughout, and matrices of one shape are treated together as one batched product.
"""

from collections import defaultdict

import torch

# The quintic of Newton-Schulz; five rounds bring every singular value near one.
A, B, C = 3.4445, -4.7750, 2.0315
N_ROUNDS = 5


def orthogonal(gradient: torch.Tensor) -> torch.Tensor:
    """The nearest orthogonal matrices, roughly, to matrices [N, rows, columns]."""
    wide = gradient.size(-2) <= gradient.size(-1)
    x = gradient if wide else gradient.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(N_ROUNDS):
        gram = x @ x.mT
        x = A * x + (B * gram + C * gram @ gram) @ x
    return x if wide else x.mT


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, made orthogonal, times sqrt(max(1, rows / columns)), with decoupled weight decay."""

    def __init__(self, params, lr: float, momentum: float = 0.95, weight_decay: float = 0.01):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        """One update of every matrix."""
        for group in self.param_groups:
            shapes = defaultdict(list)
            for matrix in group["params"]:
                shapes[matrix.shape].append(matrix)
            for (rows, columns), matrices in shapes.items():
                updates = orthogonal(torch.stack([self.direction(matrix, group["momentum"]) for matrix in matrices]))
                step = -group["lr"] * max(1.0, rows / columns) ** 0.5
                for matrix, update in zip(matrices, updates):
                    matrix.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=step)

    def direction(self, matrix: torch.Tensor, momentum: float) -> torch.Tensor:
        """The Nesterov direction of one matrix; updates its momentum."""
        state = self.state[matrix]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(matrix)
        state["momentum"].lerp_(matrix.grad, 1 - momentum)
        return matrix.grad.lerp(state["momentum"], momentum)
