#include "link/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <vector>

#include "base/read_write.h"
#include "base/start_thread.h"
#include "link/transport/grpc_stream.h"
#include "link/transport/log.h"
#include "wire/descriptors.h"

namespace longwire::link {
namespace {

using Clock = std::chrono::steady_clock;
using transport::MessageStream;

constexpr size_t kTextLimit = 4096;
constexpr std::chrono::milliseconds kPatience{1000};
constexpr std::chrono::seconds kSweepTime{3};
constexpr std::chrono::milliseconds kSweepPause{100};
constexpr const char* kFirstLine = "longwire session 1";
constexpr const char* kTaken = ".taken";
constexpr uint64_t kDigit = 16;

uint64_t OwnSpace() {
  struct stat space {};
  return stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
}

std::string Hexadecimal(const transport::Token& token) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (std::byte each : token) {
    text += kDigits[std::to_integer<uint64_t>(each) / kDigit];
    text += kDigits[std::to_integer<uint64_t>(each) % kDigit];
  }
  return text;
}

bool ReadToken(const std::string& text, transport::Token* token) {
  if (text.size() != 2 * token->size()) return false;
  for (size_t i = 0; i < token->size(); ++i) {
    unsigned value = 0;
    if (std::sscanf(text.c_str() + 2 * i, "%2x", &value) != 1) return false;
    (*token)[i] = static_cast<std::byte>(value);
  }
  return true;
}

std::string TextOf(const Leftover& of) {
  std::ostringstream text;
  text << kFirstLine << "\n"
       << of.owner << "\n"
       << of.server << "\n"
       << of.session << " " << of.program.pid << " " << of.program.started << " "
       << of.program.space << " " << Hexadecimal(of.token) << "\n";
  return text.str();
}

std::optional<Leftover> Parse(const std::string& text) {
  std::istringstream lines(text);
  Leftover of;
  std::string first, token;
  if (!std::getline(lines, first) || first != kFirstLine) return std::nullopt;
  if (!std::getline(lines, of.owner) || !std::getline(lines, of.server)) return std::nullopt;
  lines >> of.session >> of.program.pid >> of.program.started >> of.program.space >> token;
  if (!lines || !ReadToken(token, &of.token)) return std::nullopt;
  return of;
}

// True if the server has answered, whatever it said.
bool Tell(ServerConnection& servers, const Leftover& of) {
  std::string sentence;
  auto channel = servers.To(of.server, &sentence);
  if (!channel || !WaitUntilReady(*channel, Clock::now() + kPatience, nullptr)) return false;
  auto stream = transport::ClientStream::Connect(channel->channel, kPatience);
  if (stream == nullptr) return false;
  transport::Attach attach;
  attach.session = of.session;
  attach.token = of.token;
  attach.resume_position = transport::kAbandoned;
  std::string body = transport::EncodeAttach(attach);
  transport::FrameHeader header;
  header.epoch = UINT32_MAX;
  header.flags = transport::kFrameAttach;
  stream->StartWrite(header, std::as_bytes(std::span(body)), nullptr);
  bool told = stream->Wait(Clock::now() + kPatience) == MessageStream::Event::kWritten;
  if (told) {
    stream->StartRead();
    told = stream->Wait(Clock::now() + kPatience) == MessageStream::Event::kRead;
  }
  stream->End(true);
  if (told) servers.GiveBack(std::move(*channel));
  return told;
}

std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> files;
  DIR* all = opendir(folder.c_str());
  if (all == nullptr) return files;
  while (const dirent* entry = readdir(all)) {
    std::string name = entry->d_name;
    if (name.front() != '.' && !name.ends_with(kTaken)) files.push_back(folder + "/" + name);
  }
  closedir(all);
  return files;
}

}  // namespace

std::optional<ProcessMark> MarkOf(pid_t pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/stat";
  std::string text = wire::ReadFile(path.c_str(), kTextLimit);
  size_t name_end = text.rfind(')');
  if (pid <= 0 || name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state, skipped;
  fields >> state;
  constexpr int kBetween = 18;  // of proc(5)'s fields, from the state to the start time
  for (int i = 0; i < kBetween; ++i) fields >> skipped;
  ProcessMark mark{pid, 0, OwnSpace()};
  fields >> mark.started;
  if (!fields || state == "Z" || state == "X") return std::nullopt;
  return mark;
}

LeftoverNote::LeftoverNote(const std::string& folder, Leftover content)
    : content_(std::move(content)),
      path_(folder + "/" + content_.server + "-" + std::to_string(content_.session)) {
  mkdir(folder.c_str(), 0700);
  Write(content_.token);
}

void LeftoverNote::Write(const transport::Token& token) {
  content_.token = token;
  const std::string text = TextOf(content_), made = path_ + kTaken;
  wire::Descriptor file = wire::OpenFile(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  bool whole = file.valid() && base::WriteAll(file.get(), std::as_bytes(std::span(text)));
  if (!whole || rename(made.c_str(), path_.c_str()) != 0) unlink(made.c_str());
}

void LeftoverNote::Remove() { unlink(path_.c_str()); }

std::unique_ptr<LeftoverNote> Leftovers::Note(pid_t program, const std::string& server,
                                              uint64_t session,
                                              const transport::Token& token) const {
  auto mark = MarkOf(program);
  if (!mark || server.find_first_of("/\n") != std::string::npos) return nullptr;
  return std::make_unique<LeftoverNote>(folder_, Leftover{owner_, server, session, *mark, token});
}

void Leftovers::EndAll(ServerConnection& servers, pid_t opening) const {
  const uint64_t space = OwnSpace();
  const auto deadline = Clock::now() + kPatience;
  for (const std::string& path : FilesOf(folder_)) {
    if (Clock::now() >= deadline) return;
    auto of = Parse(wire::ReadFile(path.c_str(), kTextLimit));
    if (!of || of->owner != owner_ || of->program.space != space) continue;
    if (of->program.pid != opening && MarkOf(of->program.pid) == of->program) continue;
    // Of several links one tells the server.
    const std::string taken = path + kTaken;
    if (rename(path.c_str(), taken.c_str()) != 0) continue;
    if (!Tell(servers, *of)) {
      rename(taken.c_str(), path.c_str());
      continue;
    }
    unlink(taken.c_str());
    transport::Log(transport::LogLevel::kInfo, of->session,
                   "its program and its link have ended; the server has ended it");
  }
}

Leftovers::Sweep::Sweep(const Leftovers& leftovers, ServerConnection& servers) {
  // Without a thread the next link that opens a session does it.
  static_cast<void>(base::StartThread(&thread_, [&] { Run(leftovers, servers); }));
}

Leftovers::Sweep::~Sweep() {
  ends_.store(true);
  if (thread_.joinable()) thread_.join();
}

void Leftovers::Sweep::Run(const Leftovers& leftovers, ServerConnection& servers) {
  const auto end = Clock::now() + kSweepTime;
  while (!ends_.load() && Clock::now() < end) {
    leftovers.EndAll(servers, 0);
    std::this_thread::sleep_for(kSweepPause);
  }
}

}  // namespace longwire::link
