"""What an aggregate on Arrow tables is; ``windowpane.aggregates`` holds each of them."""
