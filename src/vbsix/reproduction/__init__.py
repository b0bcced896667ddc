"""The paper's tables and figures, made from runs that lie in one folder and are done bit by bit."""
