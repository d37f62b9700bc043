// longwire join: gets this user's certificate with an invitation.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "base/environment.h"
#include "base/reason.h"
#include "cli/doctor.h"
#include "cli/enrol/signer_file.h"
#include "cli/json/json_object.h"
#include "cli/text.h"
#include "link/certificates/authority.h"
#include "link/certificates/pem_files.h"
#include "link/certificates/signer_client.h"
#include "link/certificates/signing_request.h"

namespace longwire::cli {
namespace {

using certificates::Answer;
using certificates::Invitation;
using certificates::Readers;

constexpr const char* kJoinFooter =
    "The private key is made here and stays here. What is sent goes to a signer of the authority "
    "that LINE names, and to no other. Then it opens a session, as longwire doctor does.\n\n"
    "The exit status is 0 if all is well, 1 if there is no certificate, 2 if this command was "
    "called "
    "wrongly, 3 if the certificate is in place but no session opens.";

constexpr int kNoSession = 3;

std::string OwnFolder() {
  const char* home = base::Environment("HOME");
  return std::string(home == nullptr ? "." : home) + "/.config/longwire";
}

struct Wish {
  std::string folder = OwnFolder();
  std::string line;
  bool force = false;
  bool trial = true;
  bool json = false;
};

struct Files {
  certificates::PemFiles pair;
  std::string authority;
  std::string signer;
};

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "longwire join: %s\n", Printable(sentence).c_str());
  return 1;
}

// Before anything is sent: an invitation is good once.
bool CanWrite(const Wish& wish, const Files& files, std::string* sentence) {
  if (!certificates::MakeFolder(wish.folder, sentence)) return false;
  if (access(wish.folder.c_str(), W_OK | X_OK) != 0) {
    *sentence = "cannot write to " + wish.folder + ": " + base::Reason(errno);
    return false;
  }
  for (const std::string& path :
       {files.pair.certificate, files.pair.key, files.authority, files.signer}) {
    if (wish.force || access(path.c_str(), F_OK) != 0) continue;
    *sentence = path + " is there already; --force replaces it, --dir takes another folder";
    return false;
  }
  return true;
}

bool WriteAll(const Wish& wish, const Files& files, const Invitation& invitation,
              const Answer& answer, const std::string& key, std::string* sentence) {
  return certificates::WriteFiles(files.pair, {answer.certificate, key}, wish.force, sentence) &&
         certificates::WriteText(files.authority, answer.authority, Readers::kAll, wish.force,
                                 sentence) &&
         certificates::WriteText(files.signer, invitation.signer.Text() + "\n", Readers::kAll,
                                 wish.force, sentence);
}

void Print(const Files& files, const Answer& answer) {
  transport::CertificatePointer made = transport::ParseCertificate(answer.certificate);
  transport::Certificate facts = transport::Describe(made.get());
  std::printf(
      "%s: the certificate of '%s', valid until %s\n%s: its private key\n%s: the authority\n",
      files.pair.certificate.c_str(), Printable(facts.common_name).c_str(),
      transport::DateText(facts.not_after).c_str(), files.pair.key.c_str(),
      files.authority.c_str());
}

// What longwire doctor says of the server, which has to be given, with these files. Its status.
int Try(const Files& files, const std::string& given, bool json) {
  setenv("LONGWIRE_CERT", files.pair.certificate.c_str(), 1);
  setenv("LONGWIRE_KEY", files.pair.key.c_str(), 1);
  setenv("LONGWIRE_CA", files.authority.c_str(), 1);
  setenv("LONGWIRE_SERVER", given.c_str(), 1);
  ServerOptions options;
  FindServer(&options);
  return Diagnose(options, false, json);
}

// With what longwire doctor says, where a session is tried; else null.
int PrintJson(const Wish& wish, const Files& files, const Answer& answer) {
  transport::CertificatePointer made = transport::ParseCertificate(answer.certificate);
  transport::Certificate facts = transport::Describe(made.get());
  JsonObject object;
  object.Add("certificate", files.pair.certificate).Add("key", files.pair.key);
  object.Add("authority", files.authority).Add("identity", facts.common_name);
  object.Add("valid_until", transport::DateText(facts.not_after)).Add("server", answer.server);
  const std::string text = object.Text();
  std::printf("%s,\"doctor\":", text.substr(0, text.size() - 1).c_str());
  std::fflush(stdout);
  int status = 0;
  if (wish.trial && !answer.server.empty()) {
    status = Try(files, answer.server, true);
  } else {
    std::printf("null\n");
  }
  std::printf("}\n");
  return status == 0 ? 0 : kNoSession;
}

int TrySession(const Files& files, const std::string& given) {
  const std::string server = Printable(given);
  std::printf("\n");
  std::fflush(stdout);
  if (Try(files, given, false) == 0) {
    std::printf("run programs with: longwire run --server %s -- PROGRAM\n", server.c_str());
    return 0;
  }
  std::fflush(stdout);
  Fail(
      "the certificate is in place, but no session opens: follow the remedies above, then try "
      "again with: longwire doctor --server " +
      server);
  return kNoSession;
}

int Join(Wish wish) {
  if (wish.line.empty())
    RefuseValue("the line of the invitation is missing. See longwire join --help");
  wish.folder = std::filesystem::absolute(wish.folder).lexically_normal().string();
  std::string sentence;
  auto invitation = certificates::ParseInvitation(wish.line, &sentence);
  if (!invitation) {
    Fail(sentence);
    return kUsageStatus;
  }
  const Files files{certificates::FilesOf(wish.folder + "/client"), wish.folder + "/ca.crt",
                    wish.folder + "/" + kSignerFile};
  if (!CanWrite(wish, files, &sentence)) return Fail(sentence);
  const std::string key = certificates::NewKey(&sentence);
  auto signing_request =
      key.empty() ? std::nullopt : certificates::MakeSigningRequest(key, &sentence);
  if (!signing_request) return Fail(sentence);
  certificates::Request request;
  request.secret = invitation->secret;
  request.signing_request = *signing_request;
  certificates::SignerTrust trust;
  trust.fingerprint = invitation->authority;
  auto answer =
      certificates::AskSigner(invitation->signer, trust, request, kSignerPatience, &sentence);
  if (!answer) return Fail(sentence);
  if (!answer->problem.empty()) {
    return Fail("the signer at " + invitation->signer.Text() + " refused: " + answer->problem);
  }
  sentence = certificates::ProblemOf(*answer, invitation->authority, key);
  if (!sentence.empty()) return Fail(sentence);
  if (!WriteAll(wish, files, *invitation, *answer, key, &sentence)) return Fail(sentence);
  if (wish.json) return PrintJson(wish, files, *answer);
  Print(files, *answer);
  return wish.trial && !answer->server.empty() ? TrySession(files, answer->server) : 0;
}

}  // namespace

void AddJoin(CommandLine& line) {
  auto wish = std::make_shared<Wish>();
  auto no_trial = std::make_shared<bool>();
  CLI::App& command = line.Add(
      nullptr, "join",
      "get this user's certificate with the line of an invitation, and open a session", [=] {
        wish->trial = !*no_trial;
        return Join(*wish);
      });
  command.add_option("LINE", wish->line, "what longwire invite printed there");
  command
      .add_option("--dir", wish->folder,
                  "where the files go (default ~/.config/longwire, where programs search them): "
                  "client.crt, client.key, ca.crt, and signer, the address for longwire cert renew")
      ->type_name("D");
  command.add_flag("--force", wish->force, "replace files that are there already");
  command.add_flag("--no-trial", *no_trial, "open no session");
  command.add_flag("--json", wish->json, "the result for programs, with what longwire doctor says");
  command.footer(kJoinFooter);
}

}  // namespace longwire::cli
