// Keys of maps, as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace longwire::policy {

// A number, tenant:NAME or kernel:NAME; none: it is neither.
std::optional<uint64_t> ParseKey(const std::string& key);

}  // namespace longwire::policy
