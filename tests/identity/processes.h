// Real processes for tests: longwired with mutual TLS over a warden of the test's own, links,
// commands. All lies in a folder of the test's own.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>

#include "tests/identity/papers.h"
#include "tests/transport/session_fixture.h"

namespace longwire::identity {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A child process; ended with the object.
class Process {
 public:
  // Output goes to the end of `log`. `settings` are NAME=value, on top of this process's own.
  Process(const std::vector<std::string>& command, const std::string& log,
          const std::vector<std::string>& settings = {}) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND;
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), kAppend, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(), kAppend, 0600);
    std::vector<char*> words = Pointers(command);
    std::vector<std::string> all = settings;
    for (char** variable = environ; *variable != nullptr; ++variable) all.push_back(*variable);
    std::vector<char*> environment = Pointers(all);
    posix_spawn(&pid_, words[0], &actions, nullptr, words.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Process() {
    if (pid_ <= 0) return;
    kill(pid_, SIGTERM);
    Wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Its exit status.
  int Wait() {
    int status = -1;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void Signal(int signal) { kill(pid_, signal); }
  bool Alive() const { return pid_ > 0 && kill(pid_, 0) == 0; }

 private:
  static std::vector<char*> Pointers(const std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    return pointers;
  }
  pid_t pid_ = -1;
};

class DaemonTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { transport::PrepareProcess(); }

  void SetUp() override {
    port_ = daemon::FreePort();
    address_ = "127.0.0.1:" + std::to_string(port_);
    warden_ = std::make_unique<daemon::FakeWarden>(folder_ / "warden");
  }

  // With `tls` (none: without) and the YAML text of the tenants.
  void WriteConfiguration(const transport::TlsFiles& tls, const std::string& tenants) {
    std::ofstream file(folder_ / "longwired.yaml");
    file << "listen: " << address_ << "\nlocal_socket: " << (folder_ / "door")
         << "\nwarden: " << (folder_ / "warden") << "\n";
    if (!tls.none()) {
      file << "tls:\n  certificate: " << tls.certificate << "\n  key: " << tls.key
           << "\n  authority: " << tls.authority << "\n";
    }
    file << tenants;
  }

  void StartDaemon(const transport::TlsFiles& tls, const std::string& tenants = "") {
    WriteConfiguration(tls, tenants);
    daemon_ = std::make_unique<Process>(
        std::vector<std::string>{LONGWIRED, "--config", folder_ / "longwired.yaml"}, LogPath(),
        std::vector<std::string>{"LONGWIRE_RUNTIME_DIR=" + folder_.path()});
    ASSERT_TRUE(LogSays("ready, version")) << Log();
  }

  std::string LogPath() const { return folder_ / "log"; }
  std::string Log() const {
    std::stringstream text;
    text << std::ifstream(LogPath()).rdbuf();
    return text.str();
  }
  bool LogSays(const std::string& text) {
    return daemon::Eventually([&] { return Log().find(text) != std::string::npos; }, seconds(10));
  }

  // The refusal of a program that comes through a link with this identity. Empty: it was served.
  std::string ThroughLink(const transport::TlsFiles& files, const std::string& server = "") {
    std::string door = folder_ / ("link-" + std::to_string(++links_));
    std::vector<std::string> command = {LINK,       "--server", server.empty() ? address_ : server,
                                        "--socket", door,       "--foreground"};
    if (!files.certificate.empty()) command.insert(command.end(), {"--cert", files.certificate});
    if (!files.key.empty()) command.insert(command.end(), {"--key", files.key});
    if (!files.authority.empty()) command.insert(command.end(), {"--ca", files.authority});
    Process link(command, folder_ / "link-log");
    EXPECT_TRUE(daemon::Eventually([&] { return wire::ConnectLocal(door).valid(); }, seconds(20)));
    daemon::Program program;
    auto start = Clock::now();
    if (program.Open(door)) return program.Echo("a few bytes") ? "" : "no echo";
    double took = std::chrono::duration<double>(Clock::now() - start).count();
    std::printf("refused after %.0f ms: %s\n", took * 1000, program.reply.sentence.c_str());
    EXPECT_LT(took, 5.0);
    EXPECT_FALSE(program.reply.sentence.empty());
    return program.reply.sentence;
  }

  // A connection of this process, without the checks that a link makes of its own files.
  std::shared_ptr<grpc::Channel> Connect(const transport::TlsFiles& files) {
    std::string sentence;
    transport::SpeakTls13Only();
    transport::TlsMaterial material;
    material.certificate = certificates::ReadText(files.certificate, &sentence).value_or("");
    material.key = certificates::ReadText(files.key, &sentence).value_or("");
    material.authority = certificates::ReadText(files.authority, &sentence).value_or("");
    return transport::OpenChannel(address_, &material);
  }
  // Whether the daemon answers there at all.
  grpc::Status Inspect(const std::shared_ptr<grpc::Channel>& channel,
                       transport::InspectReply* reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(5));
    return transport::Transport::NewStub(channel)->Inspect(&context, {}, reply);
  }

  Folder folder_;
  Authority authority_{folder_ / "papers"};
  uint16_t port_ = 0;
  std::string address_;
  std::unique_ptr<daemon::FakeWarden> warden_;
  std::unique_ptr<Process> daemon_;
  int links_ = 0;
};

}  // namespace longwire::identity
