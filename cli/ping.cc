#include "cli/ping.h"

#include <algorithm>
#include <chrono>

#include "link/transport/grpc_stream.h"
#include "link/transport/spinning.h"

namespace longwire::cli {
namespace {

using Clock = std::chrono::steady_clock;
using transport::MessageStream;

constexpr std::chrono::seconds kPatience{3};
constexpr int kWarmUp = 5;  // not counted: the first messages find caches cold

// As the link does: polls for a while, then sleeps.
MessageStream::Event WaitPolling(MessageStream& stream) {
  transport::SpinPermit permit;
  auto end = Clock::now() + transport::kSpinTime;
  while (permit.granted() && Clock::now() < end) {
    auto event = stream.Wait(wire::Deadline{});
    if (event != MessageStream::Event::kNone) return event;
  }
  return stream.Wait(Clock::now() + kPatience);
}

bool PingOnce(MessageStream& stream) {
  transport::FrameHeader header;
  header.flags = transport::kFramePing;
  const std::byte body[64] = {};  // about one call
  stream.StartRead();
  stream.StartWrite(header, body, nullptr);
  bool written = false, read = false;
  while (!written || !read) {
    auto event = WaitPolling(stream);
    written |= event == MessageStream::Event::kWritten;
    read |= event == MessageStream::Event::kRead;
    bool ours = event == MessageStream::Event::kWritten || event == MessageStream::Event::kRead;
    if (!ours) return false;
  }
  return stream.received().header.flags == transport::kFramePong;
}

}  // namespace

std::optional<std::vector<double>> MeasureRoundTrips(const std::shared_ptr<grpc::Channel>& channel,
                                                     int count) {
  auto stream = transport::ClientStream::Connect(channel, kPatience);
  if (stream == nullptr) return std::nullopt;
  std::vector<double> times;
  for (int i = 0; i < count + kWarmUp; ++i) {
    auto start = Clock::now();
    if (!PingOnce(*stream)) break;
    double time = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (i >= kWarmUp) times.push_back(time);
  }
  stream->End(true);
  if (times.size() != static_cast<size_t>(count)) return std::nullopt;
  std::sort(times.begin(), times.end());
  return times;
}

void CloseSession(const std::shared_ptr<grpc::Channel>& channel, const transport::Attach& attach) {
  auto stream = transport::ClientStream::Connect(channel, kPatience);
  if (stream == nullptr) return;
  std::string body = transport::EncodeAttach(attach);
  transport::FrameHeader header{0, 0, 1, transport::kFrameAttach};
  stream->StartWrite(header, std::as_bytes(std::span(body)), nullptr);
  bool sent = stream->Wait(Clock::now() + kPatience) == MessageStream::Event::kWritten;
  if (sent) {
    std::string closed = transport::EncodeClosed({});
    header.flags = transport::kFrameClosed;
    stream->StartWrite(header, std::as_bytes(std::span(closed)), nullptr);
    sent = stream->Wait(Clock::now() + kPatience) == MessageStream::Event::kWritten;
  }
  stream->End(!sent);
}

}  // namespace longwire::cli
