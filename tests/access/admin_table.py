"""Who may do what in the admin: every page, for every kind of visitor.

`nobody` are all who are not logged in as staff: no session, a key, a token, a member who is no staff, one who
is inactive. `outsider` is staff without a membership. Then come the members of the organization whose rows
are asked for, and a superuser; `stranger` administers another organization. A redirect (302) of `nobody` is
the login. Whoever may not open a kind of page at all gets 403; whoever may, 404 for what is not theirs. HEAD
is as GET, and other methods are 405 to everybody.
"""

from __future__ import annotations

COLUMNS = """
                  nobody  outsider  reviewer  operator  administrator  superuser  stranger
"""

SITE = """
index
  GET,POST        302     200       200       200       200            200        200
login
  GET             200     302       302       302       302            302        302
  POST            200     200       200       200       200            200        200
logout
  GET             302     405       405       405       405            405        405
  POST            302     200       200       200       200            200        200
password_change
  GET,POST        302     200       200       200       200            200        200
password_change_done
  GET             302     200       200       200       200            200        200
  POST            302     405       405       405       405            405        405
autocomplete
  GET             302     403       403       403       403            403        403
  POST            302     405       405       405       405            405        405
jsi18n
  GET             302     200       200       200       200            200        200
  POST            302     405       405       405       405            405        405
search
  GET,POST        302     404       404       404       404            404        404
view_on_site
  GET,POST        302     404       404       404       404            404        404
app_list
  GET,POST        302     404       200       200       200            200        200
anything else
  GET,POST        302     404       404       404       404            404        404
"""

# Pages that are read and never written.
READ = """
changelist
  GET,POST        302     403       200       200       200            200        200
change
  GET             302     403       200       200       200            200        404
  POST            302     403       405       405       405            405        404
history
  GET,POST        302     404       200       200       200            200        404
add
  GET,POST        302     403       403       403       403            403        403
delete
  GET,POST        302     403       403       403       403            403        403
old address
  GET,POST        302     302       302       302       302            302        302
"""

DECISIONS = """
approve
  GET             302     403       405       405       405            405        404
  POST            302     403       302       403       302            302        404
reject
  GET             302     403       405       405       405            405        404
  POST            302     403       302       403       302            302        404
undo
  GET             302     403       405       405       405            405        404
  POST            302     403       302       403       302            302        404
merge
  GET             302     403       200       403       200            200        404
  POST            302     403       400       403       400            400        404
approve_many
  GET             302     403       200       403       200            200        200
  POST            302     403       200       403       200            200        200
reject_many
  GET             302     403       200       403       200            200        200
  POST            302     403       200       403       200            200        200
"""

# What an open page asks for, to tell that somebody else decided.
WATCHING = """
state
  GET             302     403       200       200       200            200        404
  POST            302     403       405       405       405            405        404
"""

# What administrators alone read.
TRAIL = """
changelist
  GET,POST        302     403       403       403       200            200        200
change
  GET             302     403       403       403       200            200        404
  POST            302     403       403       403       405            405        404
history
  GET,POST        302     404       404       404       200            200        404
add
  GET,POST        302     403       403       403       403            403        403
delete
  GET,POST        302     403       403       403       403            403        403
old address
  GET,POST        302     302       302       302       302            302        302
"""

# What members read and administrators write.
MANAGED = """
changelist
  GET,POST        302     403       200       200       200            200        200
change
  GET             302     403       200       200       200            200        404
  POST            302     403       403       403       302            302        404
add
  GET             302     403       403       403       200            200        200
  POST            302     403       403       403       302            302        400
history
  GET,POST        302     404       200       200       200            200        404
delete
  GET,POST        302     403       403       403       403            403        403
old address
  GET,POST        302     302       302       302       302            302        302
"""

ORGANIZATIONS = """
changelist
  GET,POST        302     403       200       200       200            200        200
change
  GET             302     403       200       200       200            200        404
  POST            302     403       403       403       405            302        404
settings
  GET             302     403       403       403       200            200        404
  POST            302     403       403       403       302            302        404
webhook_secret
  GET             302     403       403       403       200            200        404
  POST            302     403       403       403       200            200        404
add
  GET             302     403       403       403       403            200        403
  POST            302     403       403       403       403            302        403
history
  GET,POST        302     404       200       200       200            200        404
delete
  GET,POST        302     403       403       403       403            403        403
old address
  GET,POST        302     302       302       302       302            302        302
"""

# A key is never changed, and shown once: by the page that makes it.
KEYS = """
changelist
  GET,POST        302     403       200       200       200            200        200
change
  GET             302     403       200       200       200            200        404
  POST            302     403       403       403       405            405        404
rotate
  GET             302     403       403       403       200            200        404
  POST            302     403       403       403       200            200        404
revoke
  GET             302     403       403       403       200            200        404
  POST            302     403       403       403       302            302        404
add
  GET             302     403       403       403       200            200        200
  POST            302     403       403       403       200            200        400
history
  GET,POST        302     404       200       200       200            200        404
delete
  GET,POST        302     403       403       403       403            403        403
old address
  GET,POST        302     302       302       302       302            302        302
"""

# A new member's password is shown once: by the page that makes the login.
MEMBERS = """
changelist
  GET,POST        302     403       200       200       200            200        200
change
  GET             302     403       200       200       200            200        404
  POST            302     403       403       403       302            302        404
remove
  GET             302     403       403       403       200            200        404
  POST            302     403       403       403       302            302        404
add
  GET             302     403       403       403       200            200        200
  POST            302     403       403       403       200            200        400
history
  GET,POST        302     404       200       200       200            200        404
delete
  GET,POST        302     403       403       403       403            403        403
old address
  GET,POST        302     302       302       302       302            302        302
"""

# What belongs to no organization.
LOGINS = """
changelist
  GET,POST        302     403       403       403       403            200        403
change
  GET             302     403       403       403       403            200        403
  POST            302     403       403       403       403            302        403
password_change
  GET             302     403       403       403       403            200        403
  POST            302     403       403       403       403            302        403
add
  GET             302     403       403       403       403            200        403
  POST            302     403       403       403       403            302        403
history
  GET,POST        302     403       403       403       403            200        403
delete
  GET,POST        302     403       403       403       403            200        403
old address
  GET,POST        302     302       302       302       302            302        302
"""

JOBS = """
changelist
  GET,POST        302     403       403       403       403            200        403
change
  GET             302     403       403       403       403            200        403
  POST            302     403       403       403       403            403        403
history
  GET,POST        302     403       403       403       403            200        403
add
  GET,POST        302     403       403       403       403            403        403
delete
  GET,POST        302     403       403       403       403            403        403
old address
  GET,POST        302     302       302       302       302            302        302
"""

# Of requests of several organizations those are replayed in which the user may operate.
REPLAY = """
replay
  GET             302     403       405       405       405            405        404
  POST            302     403       403       302       302            302        404
replay_many
  GET             302     403       403       200       200            200        200
  POST            302     403       403       302       302            302        302
"""

CLOSING = """
close
  GET             302     403       405       405       405            405        404
  POST            302     403       403       302       302            302        404
"""

# Of sessions of several organizations those are retried in which the user may operate; each says its outcome.
RETRYING = """
learn
  GET             302     403       405       405       405            405        404
  POST            302     403       403       302       302            302        404
retry
  GET             302     403       405       405       405            405        404
  POST            302     403       403       302       302            302        404
retry_many
  GET             302     403       403       200       200            200        200
  POST            302     403       403       200       200            200        200
"""

# The reply as a file; it only reads.
REPLY = """
reply
  GET             302     403       200       200       200            200        404
  POST            302     403       405       405       405            405        404
"""

# What changes on the page of a run; it only reads.
LIVE = """
live
  GET             302     403       200       200       200            200        404
  POST            302     403       405       405       405            405        404
"""

# Who decides about proposals has the permission `release_quarantined` as well; each one says its outcome.
RELEASING = """
release
  GET             302     403       405       405       405            405        404
  POST            302     403       302       403       302            302        404
release_many
  GET             302     403       200       403       200            200        200
  POST            302     403       200       403       200            200        200
"""

# Whoever may operate brings skills along, as proposals.
TRAVELLING = """
import
  GET             302     403       403       200       200            200        200
  POST            302     403       403       200       200            200        400
"""

# Who decides publishes, an operator proposes.
EDITING = """
edit
  GET             302     403       200       200       200            200        404
  POST            302     403       302       302       302            302        404
"""

# A proposal waits for the skill: that one is to be edited, says the form.
EDITING_SKILL = """
edit
  GET             302     403       200       200       200            200        404
  POST            302     403       400       400       400            400        404
merge
  GET             302     403       200       200       200            200        404
  POST            302     403       400       400       400            400        404
"""

# What comes back, and what is taken out; which of them a skill's status allows, its service says.
HISTORY = """
export
  GET             302     403       200       200       200            200        404
  POST            302     403       405       405       405            405        404
compare
  GET             302     403       200       200       200            200        404
  POST            302     403       405       405       405            405        404
rollback
  GET             302     403       404       403       404            404        404
  POST            302     403       404       403       404            404        404
archive
  GET             302     403       200       403       200            200        404
  POST            302     403       302       403       302            302        404
quarantine
  GET             302     403       200       403       200            200        404
  POST            302     403       302       403       302            302        404
restore
  GET             302     403       200       403       200            200        404
  POST            302     403       400       403       400            400        404
release
  GET             302     403       200       403       200            200        404
  POST            302     403       400       403       400            400        404
archive_many
  GET             302     403       200       403       200            200        200
  POST            302     403       200       403       200            200        200
quarantine_many
  GET             302     403       200       403       200            200        200
  POST            302     403       200       403       200            200        200
restore_many
  GET             302     403       200       403       200            200        200
  POST            302     403       200       403       200            200        200
release_many
  GET             302     403       200       403       200            200        200
  POST            302     403       200       403       200            200        200
"""

# Administrators alone, and only who types the name.
ERASING = """
erase
  GET             302     403       403       403       200            200        404
  POST            302     403       403       403       302            302        404
"""

# Whoever reads the log may search.
TRYING = """
try
  GET             302     403       200       200       200            200        200
  POST            302     403       405       405       405            405        405
"""

MODELS = {
    "conversations.intakerecord": READ + REPLAY,
    "conversations.session": READ + CLOSING + RETRYING,
    "skills.autodreamrun": READ + LIVE,
    "skills.distillationattempt": READ + REPLY,
    "skills.proposercall": READ,
    "skills.searchevent": READ + TRYING,
    "skills.skill": READ + TRAVELLING + EDITING_SKILL + HISTORY + ERASING,
    "skills.skillexperience": READ + RELEASING,
    "skills.skillrevision": READ + DECISIONS + WATCHING + EDITING,
    "tenants.auditevent": TRAIL,
    "tenants.notification": TRAIL,
    "tenants.erasurereceipt": TRAIL,
    "tenants.client": MANAGED + ERASING,
    "tenants.enduser": MANAGED + ERASING,
    "tenants.membership": MEMBERS,
    "tenants.apikey": KEYS,
    "tenants.organization": ORGANIZATIONS,
    "auth.user": LOGINS,
    "procrastinate.procrastinatejob": JOBS,
}
