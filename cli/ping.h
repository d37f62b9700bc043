// Small uses of the Execute stream: measuring round trips, ending a session.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <vector>

#include "link/transport/frame.h"

namespace longwire::cli {

// Sorted round-trip times in microseconds of `count` small messages, one after the other; nullopt
// when the server does not answer.
std::optional<std::vector<double>> MeasureRoundTrips(const std::shared_ptr<grpc::Channel>& channel,
                                                     int count);

// Attaches to an opened session and ends it at once.
void CloseSession(const std::shared_ptr<grpc::Channel>& channel, const transport::Attach& attach);

}  // namespace longwire::cli
