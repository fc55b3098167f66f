"""What runs are judged by: metrics of jobs and managers, the summary, and checks on it."""
