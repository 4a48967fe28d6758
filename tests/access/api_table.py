"""Who may do what over the API: every route and method, for every kind of caller.

`nobody` are all who show no valid credential: none, a key that is unknown, revoked or expired, a token that
is none or has expired, a client's id alone. Then come the keys and the members of the organization whose rows
are asked for, and a superuser who chose it. `stranger` is an admin key of another organization, `foreign` its
administrator and a superuser who chose that other one.

A method that no row names is not there: 401 to nobody, 405 to everybody else.
"""

from __future__ import annotations

PUBLIC = """
                              anybody
/
  GET,HEAD                    302

admin
  GET,HEAD                    302

health
  GET,HEAD                    200

ready
  GET,HEAD                    200

metrics
  GET,HEAD                    404

schema
  GET,HEAD                    200

docs
  GET,HEAD                    200

auth/token
  POST                        200

auth/token/refresh
  POST                        401
"""
"""Routes that ask for no credential; tokens are given for what the body holds."""

TABLE = """
           nobody  read  write  admin  reviewer  operator  administrator  superuser  stranger  foreign

users/create_or_get
  POST     401     403   200    200    403       200       200            200        201       201

users/<id:pk>/memories
  DELETE   401     403   403    200    403       403       200            200        404       404

clients/<id:pk>/memories
  DELETE   401     403   403    200    403       403       200            200        404       404

v1/usage
  GET,HEAD 401     200   200    200    200       200       200            200        200       200

memory/add
  POST     401     403   200    200    403       200       200            200        200       200

memory/add_sync
  POST     401     403   200    200    403       200       200            200        200       200

memory/search
  GET,HEAD 401     200   200    200    200       200       200            200        200       200

memory/search_all_users
  GET,HEAD 401     200   200    200    200       200       200            200        200       200

memory/procedural/<id:pk>
  DELETE   401     403   403    200    403       403       200            200        404       404

memory/auto_dream
  POST     401     403   202    202    403       202       202            202        404       404

v1/sessions
  GET,HEAD 401     200   200    200    200       200       200            200        200       200

v1/sessions/<id:session_id>
  GET,HEAD 401     200   200    200    200       200       200            200        404       404

v1/sessions/<id:session_id>/turns
  GET,HEAD 401     200   200    200    200       200       200            200        404       404

v1/sessions/<id:session_id>/close
  POST     401     403   200    200    403       200       200            200        404       404

v1/sessions/<id:session_id>/retry
  POST     401     403   200    200    403       200       200            200        404       404

v1/intake
  GET,HEAD 401     200   200    200    200       200       200            200        200       200

v1/intake/<id:pk>
  GET,HEAD 401     200   200    200    200       200       200            200        404       404

v1/experiences
  GET,HEAD 401     200   200    200    200       200       200            200        200       200

v1/experiences/<id:pk>
  GET,HEAD 401     200   200    200    200       200       200            200        404       404

v1/experiences/<id:pk>/release
  POST     401     403   403    403    200       403       200            200        403       404

v1/runs
  GET,HEAD 401     200   200    200    200       200       200            200        200       200

v1/runs/<id:pk>
  GET,HEAD 401     200   200    200    200       200       200            200        404       404

v1/skills
  GET,HEAD 401     200   200    200    200       200       200            200        200       200

v1/skills/<id:pk>
  GET,HEAD 401     200   200    200    200       200       200            200        404       404

v1/skills/<id:pk>/SKILL.md
  GET,HEAD 401     200   200    200    200       200       200            200        404       404

v1/skills/<id:pk>/revisions
  GET,HEAD 401     200   200    200    200       200       200            200        404       404

v1/skills/<id:pk>/revisions/compare
  GET,HEAD 401     200   200    200    200       200       200            200        404       404

v1/proposals
  GET,HEAD 401     200   200    200    200       200       200            200        200       200

v1/proposals/<id:pk>
  GET,HEAD 401     200   200    200    200       200       200            200        404       404

v1/proposals/<id:pk>/approve
  POST     401     403   403    403    200       403       200            200        403       404

v1/proposals/<id:pk>/reject
  POST     401     403   403    403    200       403       200            200        403       404
"""
