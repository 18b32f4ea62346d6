"""Stock `fit` on an accelerator, beside torch.compile."""
