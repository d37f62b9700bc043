// What a worker sees of the host's files: a small tree, read-only, made once in a namespace of
// mounts of the starter's own. It has the system's programs and libraries, Longwire's own, the
// nodes of NVIDIA's devices, and no configuration, socket or home. Each worker gets /proc, /tmp and
// /dev/shm of its own, and /cache, in which its tenant's folder appears when it has a tenant.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace longwire::walls {

// Makes the tree at starter::kRoot; `more` are further paths in it. `tenants` is the folder of the
// tenants' caches, which from now on lies at starter::kTenants. False with errno where namespaces
// cannot be had.
bool BuildView(const std::vector<std::string>& more, const std::string& tenants);
// The groups that NVIDIA's device nodes want.
std::vector<gid_t> DeviceGroups();

}  // namespace longwire::walls
