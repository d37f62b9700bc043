// longwire-worker: serves one session. Started by the warden with everything it needs inherited.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/reason.h"
#include "server/driver/driver_choice.h"
#include "server/driver/process_options.h"
#include "server/protocol/log_terms.h"
#include "server/protocol/moving.h"
#include "server/statistics/page.h"
#include "server/worker/process/driver_mappings.h"
#include "server/worker/process/move_in.h"
#include "server/worker/process/move_out.h"
#include "server/worker/process/open_session.h"
#include "server/worker/process/session.h"
#include "server/worker/process/time_slice.h"
#include "server/worker/support/crash_report.h"
#include "server/worker/support/log_line.h"
#include "server/worker/support/own_pid.h"
#include "server/worker/support/text_pipes.h"
#include "server/worker/walls/settings.h"
#include "server/worker/walls/walls.h"
#include "wire/descriptor_table.h"
#include "wire/descriptors.h"
#include "wire/limits.h"
#include "wire/lost_descriptors.h"
#include "wire/socket.h"
#include "wire/switches.h"

namespace {

using namespace longwire;

constexpr const char* kUsage =
    "usage: longwire-worker --driver auto|software|PATH --device N[,N…] --control FD --up FD\n"
    "                       --down FD --keeper FD[,FD…]\n"
    "                       [--system-calls enforce|log|off] [--processes N]\n"
    "                       [--addresses random|fixed]\n"
    "Started by longwire-warden.\n";

const char* const kRandomAddresses =
    "NVIDIA's driver puts modules elsewhere in each process; workers.fixed_addresses: true lets "
    "later sessions move";

struct Arguments {
  std::string driver = "auto";
  std::vector<int32_t> devices = {0};
  int64_t control = -1;
  int64_t up = -1;
  int64_t down = -1;
  std::vector<int32_t> keepers;
  std::string system_calls = "enforce";
  std::string addresses = "random";
  bool fixed() const { return addresses == "fixed"; }
  worker::Walls walls;
};

// From here on it stands behind its walls. False with sentences on standard error.
bool Prepare(std::span<char* const> words, Arguments* arguments) {
  const ProcessOption options[] = {{"--driver", &arguments->driver},
                                   {"--device", &arguments->devices},
                                   {"--control", &arguments->control},
                                   {"--up", &arguments->up},
                                   {"--down", &arguments->down},
                                   {"--keeper", &arguments->keepers},
                                   {"--system-calls", &arguments->system_calls},
                                   {"--addresses", &arguments->addresses},
                                   {"--processes", &arguments->walls.processes}};
  int pid = 0;
  std::vector<std::string> given = worker::TakeSettings(words, &pid);
  if (pid != 0) worker::SetPid(pid);
  std::vector<char*> pointers;
  for (std::string& word : given) pointers.push_back(word.data());
  std::string problem = ParseProcessOptions(pointers, options);
  bool complete = arguments->control >= 0 && arguments->up >= 0 && arguments->down >= 0 &&
                  !arguments->keepers.empty() &&
                  worker::ParseSystemCalls(arguments->system_calls, &arguments->walls.system_calls);
  if (!problem.empty()) std::fprintf(stderr, "longwire-worker: %s\n", problem.c_str());
  if (!problem.empty() || !complete) {
    std::fputs(kUsage, stderr);
    return false;
  }
  if (const char* wall = worker::StandBehind(arguments->walls)) {
    std::fprintf(stderr, "longwire-worker: it %s (%s)\n", wall, std::strerror(errno));
    return false;
  }
  // More keepers than devices: one per device from the first on.
  while (arguments->devices.size() < arguments->keepers.size()) {
    arguments->devices.push_back(arguments->devices.back() + 1);
  }
  return true;
}

void Answer(int control, const wire::OpenReply& reply, const std::vector<int>& descriptors = {}) {
  wire::Writer writer;
  reply.Encode(writer);
  if (!wire::SendMessage(control, writer.span(), descriptors)) _exit(0);
}

// The opening, once a client has come, with the page of gates if the daemon sent one along. Ends
// the process if none ever does.
wire::OpenRequest WaitForOpen(int control, std::shared_ptr<gates::GatePage>* page,
                              std::optional<wire::Message>* move_in) {
  auto packet = wire::ReceiveMessage(control, std::chrono::milliseconds(-1));
  if (packet && message::KindOf(packet->bytes) == moving::MoveIn::kKind) {
    *move_in = std::move(packet);
    packet = wire::ReceiveMessage(control, std::chrono::milliseconds(-1));
  }
  if (!packet) _exit(0);
  wire::OpenRequest request;
  if (packet->descriptors.size() == 2) {
    *page =
        gates::GatePage::Map(std::move(packet->descriptors[0]), std::move(packet->descriptors[1]));
  }
  int error = wire::LostDescriptors(*packet) ? EMFILE : errno;
  bool limited = packet->descriptors.empty() || *page != nullptr;
  wire::Reader reader(packet->bytes);
  bool decoded = request.Decode(reader) == wire::WireResult::kOk;
  if (decoded && limited) return request;
  wire::OpenReply reply;
  reply.code = decoded ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_INVALID_VALUE;
  reply.sentence = decoded ? "the worker cannot map its limits: " + base::Reason(error)
                           : "the opening request cannot be decoded";
  Answer(control, reply);
  _exit(1);
}

[[noreturn]] void RefuseAll(int control, CUresult code, const std::string& sentence) {
  worker::LogLine("%s (error %d)", sentence.c_str(), code);
  wire::OpenReply reply;
  reply.code = code != CUDA_SUCCESS ? code : CUDA_ERROR_UNKNOWN;
  reply.sentence = sentence;
  std::shared_ptr<gates::GatePage> page;
  std::optional<wire::Message> move_in;
  WaitForOpen(control, &page, &move_in);
  Answer(control, reply);
  _exit(1);
}

// The driver that the option names. Ends the process if there is none that works.
LoadedDriver LoadChosenDriver(const Arguments& arguments, int control) {
  if (arguments.fixed()) worker::FixDriverMappings();
  LoadedDriver driver;
  std::string sentence;
  auto initialise = [](const LoadedDriver& tried, std::string* problem) {
    CUresult result = tried.table.cuInit(0);
    *problem = tried.path + ": cuInit answers " + std::to_string(result);
    return result;
  };
  CUresult result =
      ChooseDriver(arguments.driver, DriverPlaces::OfThisHost(), initialise, &driver, &sentence);
  if (result != CUDA_SUCCESS) RefuseAll(control, result, sentence);
  if (!driver.not_nvidia.empty()) {
    worker::LogLine("NO GPU DRIVER WORKS HERE (%s): using the software device, which is slow",
                    driver.not_nvidia.c_str());
  }
  return driver;
}

// The kind of cubin that the devices run; none: PTX alone, also by a variable of the driver.
std::optional<uint32_t> CubinsOf(const LoadedDriver& driver, const worker::Device& device) {
  if (driver.software || getenv("CUDA_FORCE_PTX_JIT") != nullptr ||
      getenv("CUDA_FORCE_JIT") != nullptr) {
    return std::nullopt;
  }
  int major = 0, minor = 0;
  driver.table.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                    device.handle);
  driver.table.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                    device.handle);
  return static_cast<uint32_t>(major * 10 + minor);
}

// Hardware time slices belong to the process, so the first device's wish counts for all.
void FollowTimeSlice(gates::GatePage& page) {
  static std::atomic<uint32_t> last{0};
  uint32_t wanted = page.device(0).time_slice.load();
  if (last.exchange(wanted) == wanted) return;
  page.device(0).time_slice_groups = static_cast<uint32_t>(worker::SetTimeSlice(wanted));
}

void ObeyGates(worker::WorkerSession* session, const std::shared_ptr<gates::GatePage>& page) {
  if (page == nullptr) return;
  FollowTimeSlice(*page);
  session->gates().Obey(page, [session, page] {
    FollowTimeSlice(*page);
    session->WakeLogThread();
  });
}

// One move at a time: the next one waits for the end of one that was given up just now, or asks
// again.
void TryToMove(worker::MoveOut& move_out, wire::Message message) {
  static std::atomic<bool> moves{false};
  if (message.descriptors.size() != 2) return;
  std::thread([&move_out, message = std::make_shared<wire::Message>(std::move(message))] {
    constexpr std::chrono::seconds kPatience{5};
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (moves.exchange(true)) {
      if (std::chrono::steady_clock::now() > deadline) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    moving::MoveOut request;
    const bool read = message::Unpack(message->bytes, &request) == wire::WireResult::kOk;
    move_out.Serve(std::move(message->descriptors[0]), std::move(message->descriptors[1]),
                   read && request.knows_ahead.value_or(false));
    moves = false;
  }).detach();
}

// Where to count what the session's kernels and rules do. False if the message is another one.
bool TakeStatistics(worker::WorkerSession& session, wire::Message& message) {
  statistics::Terms terms;
  if (message::Unpack(message.bytes, &terms) != wire::WireResult::kOk) return false;
  std::shared_ptr<statistics::Page> page;
  if (message.descriptors.size() == 1) {
    page = statistics::Page::Map(std::move(message.descriptors[0]));
  }
  session.rules().CountIn(page);
  session.statistics().Take(std::move(page));
  return true;
}

// From now on the log thread asks by it; the page says so, for longwire policy load waits for that.
void TakeLaunchPolicy(worker::WorkerSession& session, uint64_t policy, gates::GatePage* page) {
  session.launch_answers().Use(policy);
  session.rules().UsePolicy(policy != 0);
  if (page != nullptr) page->launch_policy() = policy;
}

void HearDaemon(worker::WorkerSession& session, worker::MoveOut& move_out, gates::GatePage* page,
                wire::Message message) {
  if (message::KindOf(message.bytes) == moving::MoveOut::kKind) {
    return TryToMove(move_out, std::move(message));
  }
  if (message::KindOf(message.bytes) == links::TellLinks::kKind) return session.links().Tell();
  message::LogTerms log;
  gates::HostMemoryTerms terms;
  rules::RuleList rules;
  launches::AskLaunches ask;
  launches::LaunchAnswer answer;
  if (message::Unpack(message.bytes, &ask) == wire::WireResult::kOk) {
    TakeLaunchPolicy(session, ask.policy, page);
  } else if (message::Unpack(message.bytes, &answer) == wire::WireResult::kOk) {
    if (session.launch_answers().Arrived(answer)) session.WakeLogThread();
  } else if (message::Unpack(message.bytes, &log) == wire::WireResult::kOk) {
    worker::SetLogLimit(log.lines_per_second);
  } else if (message::Unpack(message.bytes, &rules) == wire::WireResult::kOk) {
    session.rules().Replace(std::move(rules));
  } else if (TakeStatistics(session, message) || session.bridges().Arrived(message)) {
    return;
  } else if (message::Unpack(message.bytes, &terms) != wire::WireResult::kOk) {
    if (message::KindOf(message.bytes) == images::Forgotten::kKind) session.bridges().Forget();
    session.images().Arrived(std::move(message));
  } else if (message.descriptors.size() == 1) {
    session.host_memory().Join(terms,
                               gates::HostMemoryPage::Map(std::move(message.descriptors[0])));
  }
}

// Before the first call. Ends the process if they do not come: nothing may run without them.
void TakeRules(worker::WorkerSession& session, int control,
               const std::shared_ptr<gates::GatePage>& page) {
  if (page == nullptr || page->has_rules().load() == 0) return;
  constexpr std::chrono::seconds kPatience{30};
  auto packet = wire::ReceiveMessage(control, kPatience);
  rules::RuleList rules;
  if (!packet || message::Unpack(packet->bytes, &rules) != wire::WireResult::kOk) {
    worker::LogLine("the rules that longwired announced did not come: the session is not opened");
    _exit(1);
  }
  session.rules().Replace(std::move(rules));
}

// Likewise, so that the first launches count.
void TakeStatistics(worker::WorkerSession& session, int control,
                    const std::shared_ptr<gates::GatePage>& page) {
  if (page == nullptr || page->has_statistics().load() == 0) return;
  constexpr std::chrono::seconds kPatience{30};
  auto packet = wire::ReceiveMessage(control, kPatience);
  if (packet && TakeStatistics(session, *packet)) return;
  worker::LogLine("the statistics that longwired announced did not come: nothing is counted");
}

// Until the daemon closes it.
void HearDaemon(worker::WorkerSession& session, worker::MoveOut& move_out, gates::GatePage* page,
                int control) {
  bool closed = false;
  while (!closed) {
    auto said = wire::ReceiveMessage(control, std::chrono::milliseconds(-1), &closed);
    if (said) HearDaemon(session, move_out, page, std::move(*said));
  }
}

// For a session that moves here; nullptr: none does.
std::unique_ptr<worker::MovePieces> OfferPieces(worker::WorkerSession& session,
                                                const std::optional<wire::Message>& move_in) {
  if (!move_in || move_in->descriptors.size() != 2 || session.devices().empty()) return nullptr;
  auto pieces = std::make_unique<worker::MovePieces>(session.driver());
  (void)pieces->Offer(move_in->descriptors[1].get());
  return pieces;
}

// A session that moves here.
void TakeSession(worker::WorkerSession& session, const wire::OpenReply& reply,
                 std::unique_ptr<worker::MovePieces> pieces, wire::Message* move_in) {
  if (reply.code != 0 || pieces == nullptr) _exit(1);
  worker::MoveIn(session, reply, std::move(pieces), std::move(move_in->descriptors[0]),
                 std::move(move_in->descriptors[1]));
  session.Start();
}

void OpenLog() {
  worker::KeepLog();
  for (const std::string& sentence : wire::UnknownSwitches()) {
    worker::LogLine("%s", sentence.c_str());
  }
  worker::ReportCrashes();
}

}  // namespace

int main(int count, char** words) {
  wire::OpenStandardDescriptors();
  base::SayWhyTerminated("longwire-worker");
  std::string first = count == 2 ? words[1] : "";
  if (first == "--help" || first == "--version") {
    std::fputs(first == "--help" ? kUsage : "longwire-worker " LONGWIRE_VERSION "\n", stdout);
    return 0;
  }
  Arguments arguments;
  if (!Prepare(std::span(words, static_cast<size_t>(count)).subspan(1), &arguments)) return 2;
  signal(SIGPIPE, SIG_IGN);
  wire::PrepareDescriptorTable();
  OpenLog();
  worker::TextPipes text;
  if (!text.Install()) worker::LogLine("no pipe for standard output: device printf stays here");

  const auto control = static_cast<int>(arguments.control);
  LoadedDriver driver = LoadChosenDriver(arguments, control);
  worker::SessionOptions options;
  options.driver = driver.table;
  std::string sentence;
  CUresult result = worker::WarmDevices(driver.table, arguments.devices, arguments.keepers,
                                        &options.devices, &sentence);
  if (result != CUDA_SUCCESS) RefuseAll(control, result, sentence);
  options.up = wire::RingMemory::Map(static_cast<int>(arguments.up));
  options.down = wire::RingMemory::Map(static_cast<int>(arguments.down));
  if (options.up == nullptr || options.down == nullptr) {
    RefuseAll(control, CUDA_ERROR_UNKNOWN, "the rings that were handed over are broken");
  }
  options.control = control;
  if (arguments.fixed()) options.cubins_of = CubinsOf(driver, options.devices.front());
  options.text = &text;
  // The driver's tear-down could wait for a kernel that never ends; the keeper takes the memory
  // back when the process is gone.
  options.on_over = [] { _exit(0); };
  // Never destroyed: the process ends by _exit.
  auto* session = new worker::WorkerSession(std::move(options));
  if (!driver.software && !arguments.fixed()) session->journal().Never(kRandomAddresses);
  result = session->Prepare();
  if (result != CUDA_SUCCESS) {
    RefuseAll(control, result, "no pinned memory for the progress page");
  }

  std::shared_ptr<gates::GatePage> page;
  std::optional<wire::Message> move_in;
  wire::OpenRequest request = WaitForOpen(control, &page, &move_in);
  TakeRules(*session, control, page);
  TakeStatistics(*session, control, page);
  session->transfers().SetLimits(worker::InFlightLimits::Of(page.get()));
  session->down().HoldCredit(session->transfers().limits().held_credit());
  if (request.shares_memory && page != nullptr) {
    session->host_segment().Make(page->segment_bytes().load());
  }
  wire::OpenReply reply;
  worker::OpenSession(*session, request, driver.missing, &reply);
  if (reply.code == 0) {
    ObeyGates(session, page);
    if (!move_in) session->Start();
  }
  std::vector<int> descriptors = session->lanes().descriptors();
  if (reply.segment_bytes != 0) descriptors.push_back(session->host_segment().descriptor());
  auto pieces = OfferPieces(*session, move_in);
  Answer(control, reply, descriptors);
  if (move_in) TakeSession(*session, reply, std::move(pieces), &*move_in);
  auto* move_out = new worker::MoveOut(*session, std::move(request), reply);
  // The socket stays open for the session's life: what is known of images comes over it.
  HearDaemon(*session, *move_out, page.get(), control);
  _exit(0);
}
