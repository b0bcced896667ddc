"""How good predictions are: accuracy, calibration, spurious programs, the critic, and kinds of errors."""
