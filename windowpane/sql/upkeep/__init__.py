"""Views kept up to date: the protocol of runners, the runner without Spark, and what both runners share."""
