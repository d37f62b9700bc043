// longwire-signer: signs the certificates of invited users, and renews them.

#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "base/reason.h"
#include "link/certificates/pem_files.h"
#include "link/transport/log.h"
#include "server/signer/options.h"
#include "server/signer/service.h"
#include "server/warden/service_manager.h"
#include "wire/descriptors.h"
#include "wire/switches.h"

namespace {

using namespace longwire;

// Nobody traces this process or gets an image of its memory: the authority's key is in it.
void KeepMemoryPrivate() {
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0);
}

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "longwire-signer: %s\n", sentence.c_str());
  return 1;
}

int Run(const signer::Options& options) {
  std::string sentence;
  signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  auto authority =
      certificates::ReadFiles(certificates::FilesOf(options.folder + "/ca"), &sentence);
  if (!authority) return Fail(sentence + "; make an authority with: longwire cert init");
  if (!certificates::MakeFolder(options.state, &sentence)) return Fail(sentence);
  signer::Settings settings{*authority, options.days, options.state + "/invitations",
                            options.state + "/issued", options.revoked};
  signer::Signer decider(settings, [](bool refused, const std::string& line) {
    transport::Log(refused ? transport::LogLevel::kWarning : transport::LogLevel::kInfo, line);
  });
  signer::Service sockets(decider, *authority, options.group);
  if (!decider.Start(&sentence) || !sockets.Open(options.listen, options.socket, &sentence)) {
    return Fail(sentence);
  }
  service::Manager::Ours().Notify("READY=1");
  transport::Log(transport::LogLevel::kInfo, "ready");
  while (true) sockets.RunOnce();
}

}  // namespace

int main(int argc, char** argv) {
  wire::OpenStandardDescriptors();
  base::SayWhyTerminated("longwire-signer");
  KeepMemoryPrivate();
  for (const std::string& sentence : wire::UnknownSwitches()) {
    std::fprintf(stderr, "longwire-signer: %s\n", sentence.c_str());
  }
  signer::Refusal refusal;
  auto options = signer::ParseCommandLine(argc, argv, &refusal);
  if (!options) {
    std::fputs(refusal.text.c_str(), refusal.status == 0 ? stdout : stderr);
    return refusal.status;
  }
  return Run(*options);
}
