// The floor that calls over TCP stand on: one frame there and one back over the gRPC stream of link
// and daemon alone, between two processes that both poll it.
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

// One message at a time each way. It reads on after its answer, as link and daemon do where they
// expect one (link/transport/answer_prediction.h); with the word `eagerly` at once.
class Talker {
 public:
  Talker(MessageStream& stream, bool eagerly) : stream_(stream), eagerly_(eagerly) {
    stream_.StartRead();
  }

  void Say() {
    stream_.StartWrite({}, body_, nullptr);
    ++unwritten_;
    if (read_due_) ReadOn();
  }
  // False when the stream is over.
  bool Hear() {
    for (bool heard = false; !heard || unwritten_ > 0;) {
      Event event = stream_.Wait(wire::Deadline{});
      if (event == Event::kBroken) return false;
      if (event == Event::kWritten) --unwritten_;
      if (event == Event::kRead) heard = true;
      if (event == Event::kNone) sched_yield();
    }
    read_due_ = true;
    if (eagerly_) ReadOn();
    return true;
  }

 private:
  void ReadOn() {
    read_due_ = false;
    stream_.StartRead();
  }

  MessageStream& stream_;
  const bool eagerly_;
  bool read_due_ = false;
  std::array<std::byte, kBody> body_{};
  int unwritten_ = 0;
};

// Answers until the client goes away.
int Answer(int port_to, bool eagerly) {
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
  Talker talker(stream, eagerly);
  while (talker.Hear()) talker.Say();
  return 0;
}

int Ask(int port, bool eagerly) {
  auto channel = transport::OpenChannel("127.0.0.1:" + std::to_string(port), nullptr);
  auto stream = ClientStream::Connect(channel, std::chrono::seconds(5));
  if (stream == nullptr) return 1;
  Talker talker(*stream, eagerly);
  bool well = true;
  double time = bench::MedianTime(kRounds, [&] {
    talker.Say();
    well = well && talker.Hear();
  });
  bench::Print(eagerly ? "stream_ping_eagerly" : "stream_ping", time, "us");
  stream->End(true);
  return well ? 0 : 1;
}

}  // namespace
}  // namespace longwire

int main(int argc, char** argv) {
  bool eagerly = argc > 1 && std::strcmp(argv[1], "eagerly") == 0;
  longwire::transport::PrepareProcess();
  int ends[2];
  if (pipe(ends) != 0) return 1;
  pid_t answering = fork();  // before anything of gRPC runs
  if (answering == 0) _exit(longwire::Answer(ends[1], eagerly));
  close(ends[1]);
  int port = 0;
  if (read(ends[0], &port, sizeof(port)) != sizeof(port)) return 1;
  int result = longwire::Ask(port, eagerly);
  kill(answering, SIGKILL);
  return result;
}
