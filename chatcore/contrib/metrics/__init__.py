"""What operators watch: counts and times in Prometheus's form, of all processes of a machine.

No label has words or names of users in it.
"""
