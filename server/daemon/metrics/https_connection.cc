#include "server/daemon/metrics/https_connection.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <memory>
#include <string_view>
#include <utility>

namespace longwire::daemon {
namespace {

constexpr size_t kMaxRequestBytes = 8 << 10;
constexpr std::string_view kEnd = "\r\n\r\n";

std::string Pem(X509* certificate) {
  std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  char* text = nullptr;
  if (out == nullptr || PEM_write_bio_X509(out.get(), certificate) != 1) return "";
  const long bytes = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<size_t>(bytes)};
}

// In PEM, the client's own first.
std::string ChainOf(SSL* ssl) {
  std::unique_ptr<X509, decltype(&X509_free)> own(SSL_get1_peer_certificate(ssl), &X509_free);
  if (own == nullptr) return "";
  std::string chain = Pem(own.get());
  STACK_OF(X509)* others = SSL_get_peer_cert_chain(ssl);
  for (int i = 0; i < sk_X509_num(others); ++i) chain += Pem(sk_X509_value(others, i));
  return chain;
}

}  // namespace

HttpsConnection::HttpsConnection(wire::Descriptor socket, SSL_CTX* context,
                                 Clock::time_point deadline, Handle handle)
    : TlsExchange(std::move(socket), context, deadline), handle_(std::move(handle)) {}

std::optional<std::string> HttpsConnection::Take(std::span<const std::byte> bytes) {
  request_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool whole = request_.find(kEnd) != request_.npos;
  if (!whole && request_.size() < kMaxRequestBytes) return std::nullopt;
  HttpAnswer answer{"431 Request Header Fields Too Large", "a request has at most 8 KiB\n"};
  if (whole) answer = AnswerToRequest();
  return std::string("HTTP/1.1 ") + answer.status +
         "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: " +
         std::to_string(answer.text.size()) + "\r\nConnection: close\r\n\r\n" + answer.text;
}

HttpAnswer HttpsConnection::AnswerToRequest() const {
  const std::string line = request_.substr(0, request_.find("\r\n"));
  const size_t method = line.find(' ');
  const size_t path = method == line.npos ? line.npos : line.find(' ', method + 1);
  if (path == line.npos || !std::string_view(line).substr(path + 1).starts_with("HTTP/1.")) {
    return {"400 Bad Request", "this is no request of HTTP/1.1\n"};
  }
  if (line.substr(0, method) != "GET") {
    return {"405 Method Not Allowed", "metrics can be read by GET only\n"};
  }
  return handle_(line.substr(method + 1, path - method - 1), ChainOf(ssl()));
}

}  // namespace longwire::daemon
