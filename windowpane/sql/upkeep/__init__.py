"""Views kept up to date: what a session asks of a runner, the runner without Spark, and what both runners share."""
