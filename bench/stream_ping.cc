// The floor that calls over TCP stand on: one frame there and one back over the gRPC stream of link
// and daemon alone, between two processes that both poll it.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>

#include "bench/figures.h"
#include "link/transport/grpc_setup.h"
#include "link/transport/grpc_stream.h"
#include "proto/transport.grpc.pb.h"

namespace longwire {
namespace {

using transport::ClientStream;
using transport::MessageStream;
using transport::ServerStream;
using Event = MessageStream::Event;

constexpr int kRounds = 20'000;
constexpr size_t kBody = 128;  // bytes: a launch, and what is wanted of its stream
using Service = transport::Transport::WithRawMethod_Execute<transport::Transport::Service>;

// Sends a frame once the one before is out; false when the stream is over.
class Talker {
 public:
  explicit Talker(MessageStream& stream) : stream_(stream) { stream_.StartRead(); }

  void Say() {
    stream_.StartWrite({}, body_, nullptr);
    ++unwritten_;
  }
  bool Hear() {
    for (bool heard = false; !heard || unwritten_ > 0;) {
      Event event = stream_.Wait(wire::Deadline{});
      if (event == Event::kBroken) return false;
      if (event == Event::kWritten) --unwritten_;
      if (event == Event::kRead) heard = true;
      if (event == Event::kNone) sched_yield();
    }
    stream_.StartRead();
    return true;
  }

 private:
  MessageStream& stream_;
  std::array<std::byte, kBody> body_{};
  int unwritten_ = 0;
};

// Answers until the client goes away.
int Answer(int port_to) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Service service;
  grpc::ServerBuilder builder;
  transport::SetServerOptions(&builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  auto queue = builder.AddCompletionQueue();
  auto server = builder.BuildAndStart();
  ServerStream stream;
  service.RequestExecute(&stream.context(), &stream.stream(), &stream.queue(), queue.get(),
                         nullptr);
  if (write(port_to, &port, sizeof(port)) != sizeof(port)) return 1;
  void* tag = nullptr;
  bool ok = false;
  if (!queue->Next(&tag, &ok) || !ok) return 1;
  Talker talker(stream);
  while (talker.Hear()) talker.Say();
  _exit(0);
}

int Ask(int port) {
  auto channel = transport::OpenChannel("127.0.0.1:" + std::to_string(port), nullptr);
  auto stream = ClientStream::Connect(channel, std::chrono::seconds(5));
  if (stream == nullptr) return 1;
  Talker talker(*stream);
  bool well = true;
  double time = bench::MedianTime(kRounds, [&] {
    talker.Say();
    well = well && talker.Hear();
  });
  bench::Print("stream_ping", time, "us");
  stream->End(true);
  return well ? 0 : 1;
}

}  // namespace
}  // namespace longwire

int main(int argc, char** argv) {
  longwire::transport::PrepareProcess();
  if (argc == 3 && std::strcmp(argv[1], "answer") == 0) {
    return longwire::Answer(std::atoi(argv[2]));
  }
  int ends[2];
  if (pipe(ends) != 0) return 1;
  if (fork() == 0) {
    std::string to = std::to_string(ends[1]);
    execl("/proc/self/exe", argv[0], "answer", to.c_str(), nullptr);
    _exit(1);
  }
  int port = 0;
  if (read(ends[0], &port, sizeof(port)) != sizeof(port)) return 1;
  int result = longwire::Ask(port);
  int status = 0;
  wait(&status);
  return result;
}
