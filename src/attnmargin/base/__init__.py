"""What every room needs: errors, checks, files, seeds, progress, devices, compiled kernels."""
