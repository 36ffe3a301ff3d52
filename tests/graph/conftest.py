from tests.graph.reference import web

__all__ = ["web"]
