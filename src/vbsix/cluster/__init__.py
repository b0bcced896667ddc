"""Ray: groups of runs, and blocks of requests, as tasks on a cluster. Nothing else in vbsix imports Ray.

All nodes share the folders of runs, or reach a storage that has copies of them. So a task that is repeated on another
node continues from the last checkpoint.
"""
