"""What is erased of what was learned. Registered with `mirix.tenants.erasure`."""
