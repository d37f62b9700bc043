#include "cli/cert/show.h"

#include <cstdio>

#include "cli/json/json_object.h"
#include "cli/text.h"
#include "link/certificates/certificate.h"
#include "link/certificates/pem_files.h"

namespace longwire::cli {
namespace {

constexpr std::time_t kDay = 24 * 3600;

std::string Purpose(const transport::Certificate& certificate) {
  if (certificate.authority) return "signs certificates";
  if (certificate.for_server && certificate.for_client) return "server and client";
  if (certificate.for_server) return "server";
  return certificate.for_client ? "client" : "none that Longwire knows";
}

std::string Validity(const transport::Certificate& certificate) {
  std::time_t now = std::time(nullptr);
  std::string text = transport::DateText(certificate.not_before) + " to " +
                     transport::DateText(certificate.not_after);
  if (certificate.IsExpired(now)) return text + " (expired)";
  if (certificate.IsNotYetValid(now)) return text + " (not yet valid)";
  std::time_t left = certificate.not_after - now;
  if (left < 2 * kDay) return text + " (" + SecondsText(static_cast<double>(left)) + " left)";
  return text + " (" + std::to_string(left / kDay) + " days left)";
}

void Print(const transport::Certificate& certificate) {
  std::printf("name         %s\n", Printable(certificate.common_name).c_str());
  for (const std::string& name : certificate.names) {
    std::printf("reached by   %s\n", Printable(name).c_str());
  }
  std::printf("for          %s\n", Purpose(certificate).c_str());
  std::printf("valid        %s\n", Validity(certificate).c_str());
  std::printf("issued by    %s\n", Printable(certificate.issuer).c_str());
  std::printf("serial       %s\n", certificate.serial.c_str());
  std::printf("fingerprint  %s\n", certificate.fingerprint.c_str());
}

std::string Json(const transport::Certificate& certificate) {
  JsonObject object;
  object.Add("name", certificate.common_name).Add("reached_by", certificate.names);
  object.Add("authority", certificate.authority).Add("for_server", certificate.for_server);
  object.Add("for_client", certificate.for_client);
  object.Add("valid_from", transport::DateText(certificate.not_before));
  object.Add("valid_until", transport::DateText(certificate.not_after));
  object.Add("issued_by", certificate.issuer).Add("serial", certificate.serial);
  return object.Add("fingerprint", certificate.fingerprint).Text();
}

}  // namespace

int ShowCertificate(const std::string& path, bool json) {
  std::string sentence;
  auto text = certificates::ReadText(path, &sentence);
  std::vector<transport::CertificatePointer> all;
  if (text) {
    all = transport::ParseCertificates(*text);
    sentence = path + " has no certificate in PEM";
  }
  if (all.empty()) {
    std::fprintf(stderr, "longwire cert: %s\n", sentence.c_str());
    return 1;
  }
  if (json) {
    std::string list;
    for (const transport::CertificatePointer& certificate : all) {
      list += (list.empty() ? "" : ",") + Json(transport::Describe(certificate.get()));
    }
    std::printf("{\"certificates\":[%s]}\n", list.c_str());
    return 0;
  }
  for (const transport::CertificatePointer& certificate : all) {
    if (certificate != all.front()) std::puts("");
    Print(transport::Describe(certificate.get()));
  }
  return 0;
}

}  // namespace longwire::cli
