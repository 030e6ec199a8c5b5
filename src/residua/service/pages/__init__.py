"""Pages for people, served by the same process: no build step, nothing from elsewhere.

Plain forms that work without scripts; small scripts of our own draw curves and spare reloads.
"""

from fastapi import APIRouter

from residua.service.pages import budget, home, html, manage, play

router = APIRouter(include_in_schema=False)
for each in (html, home, manage, budget, play):
    router.include_router(each.router)
