// A pool of servers as text and as JSON: its hosts, and who waits. No terminal, no server.
#pragma once

#include <string>
#include <vector>

#include "proto/transport.pb.h"

namespace longwire::cli::top {

// Who sees the pool, who places sessions, how many there are and wait. The second is empty if all
// is well.
std::string PoolHeadLine(const transport::PoolFigures& pool);
std::string PoolAlarmLine(const transport::PoolFigures& pool);
// In at most `width` columns; 0: as many as needed. The first line has the titles. Each host, then
// its devices.
std::vector<std::string> HostLines(const transport::PoolFigures& pool, int width);
// In the order of their places.
std::vector<std::string> QueueLines(const transport::PoolFigures& pool, int width);

// Whether the host takes sessions; else why not, in a few words.
std::string HostState(const transport::PoolHost& host);

// Everything as text.
std::string PoolText(const transport::PoolFigures& pool);
// One JSON object; what is not known is null.
std::string PoolJson(const transport::PoolFigures& pool);

// What is said of a server that is in no pool.
std::string NotInPool(const std::string& server);

}  // namespace longwire::cli::top
