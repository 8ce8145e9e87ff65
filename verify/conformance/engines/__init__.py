"""The engines that replay a case."""
