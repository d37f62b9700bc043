#include "web/http_server.h"

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "base/reason.h"
#include "cli/text.h"
#include "web/answers.h"
#include "web/assets.h"
#include "web/task_queue.h"
#include "web/tls_context.h"
#include "wire/number.h"

namespace longwire::web {
namespace {

using httplib::Request;
using httplib::Response;

constexpr size_t kThreads = 16;  // a browser holds up to six, each until it is idle for so long:
constexpr time_t kIdleSeconds = 2;
constexpr time_t kPatienceSeconds = 5;  // for a part of a request or an answer
constexpr size_t kWaiting = 64;
constexpr size_t kMaxPayload = 1024;  // nobody sends one
constexpr int64_t kLongestSpan = 2 * 3600;
constexpr int kColumnLimit = 600;
constexpr int64_t kFarFuture = 1LL << 40;

const httplib::Headers& SafeHeaders() {
  static const httplib::Headers headers = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
       "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cache-Control", "no-store"}};
  return headers;
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// "localhost:7480" is the host localhost, "[::1]:7480" is ::1.
std::string NameOf(const std::string& host) {
  if (host.starts_with('[')) return Lower(host.substr(1, host.find(']') - 1));
  return Lower(host.substr(0, host.find(':')));
}

void Refuse(int status, const std::string& sentence, Response& response) {
  response.status = status;
  response.set_content(cli::Printable(sentence) + "\n", "text/plain; charset=utf-8");
}

// The parameter as a number; the default if it is not there, nullopt if it is none.
std::optional<int64_t> Parameter(const Request& request, const char* name, int64_t least,
                                 int64_t most, std::optional<int64_t> otherwise) {
  if (!request.has_param(name)) return otherwise;
  return wire::ParseNumber(request.get_param_value(name), least, most);
}

std::unique_ptr<httplib::Server> Make(const transport::TlsMaterial* tls) {
  if (tls == nullptr) return std::make_unique<httplib::Server>();
  return std::make_unique<httplib::SSLServer>(
      [tls](SSL_CTX& context) { return SetUp(context, *tls); });
}

}  // namespace

HttpServer::HttpServer(Sampler& sampler, Viewers& viewers) : sampler_(sampler), viewers_(viewers) {}

HttpServer::~HttpServer() = default;

void HttpServer::SetLimits() {
  server_->new_task_queue = [] { return new BoundedQueue(kThreads, kWaiting); };
  server_->set_keep_alive_timeout(kIdleSeconds);
  server_->set_read_timeout(kPatienceSeconds);
  server_->set_write_timeout(kPatienceSeconds);
  server_->set_payload_max_length(kMaxPayload);
  server_->set_tcp_nodelay(true);
  server_->set_default_headers(SafeHeaders());
  // Without the library's own choice of SO_REUSEPORT: two may not serve the same address.
  server_->set_socket_options([](int socket) {
    int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
}

bool HttpServer::Open(const transport::Address& address, const transport::TlsMaterial* tls,
                      std::vector<std::string> hosts, std::string* sentence) {
  hosts_ = std::move(hosts);
  tls_ = tls != nullptr;
  server_ = Make(tls);
  if (!server_->is_valid()) {
    *sentence = "OpenSSL does not take " + tls->files.certificate + " and its key";
    return false;
  }
  SetLimits();
  AddRoutes();
  errno = 0;
  port_ = address.port == 0 ? server_->bind_to_any_port(address.host)
          : server_->bind_to_port(address.host, address.port) ? address.port
                                                              : -1;
  if (port_ > 0) return true;
  *sentence = "cannot listen at " + address.Text() +
              (errno == 0 ? "" : ": " + base::Reason(errno)) + "; give another --listen";
  return false;
}

void HttpServer::Serve() { server_->listen_after_bind(); }

void HttpServer::Stop() { server_->stop(); }

bool HttpServer::Admit(const Request& request, Response& response) const {
  if (request.method != "GET" && request.method != "HEAD") {
    response.set_header("Allow", "GET, HEAD");
    Refuse(405, "this page only shows; it takes GET and HEAD", response);
    return false;
  }
  if (request.get_header_value_count("Host") != 1) {
    Refuse(400, "the request names no host, or several", response);
    return false;
  }
  const std::string name = NameOf(request.get_header_value("Host"));
  if (std::ranges::count(hosts_, name) != 0) return true;
  Refuse(421,
         "this is not the host " + name + "; start longwire-web with --host " + name +
             " if it is to be called so",
         response);
  return false;
}

bool HttpServer::FindViewer(const Request& request, Response& response, Viewer* viewer) {
  if (!tls_) {
    *viewer = {"", "", true};
    return true;
  }
  std::string sentence;
  const std::string chain = request.ssl == nullptr ? "" : ChainOf(*request.ssl);
  if (chain.empty()) {
    Refuse(403, "this page wants a certificate", response);
    return false;
  }
  switch (viewers_.Find(chain, viewer, &sentence)) {
    case Viewers::Verdict::kKnown:
      return true;
    case Viewers::Verdict::kRefused:
      Refuse(403, sentence, response);
      return false;
    default:
      Refuse(503, "longwired does not say what you may see: " + sentence, response);
      return false;
  }
}

void HttpServer::AnswerMemory(const Request& request, Response& response) {
  Viewer viewer;
  if (!FindViewer(request, response, &viewer)) return;
  const auto device = Parameter(request, "device", 0, INT32_MAX, std::nullopt);
  const auto begin = Parameter(request, "begin", 0, kFarFuture, std::nullopt);
  const auto end = Parameter(request, "end", 0, kFarFuture, std::nullopt);
  const auto columns = Parameter(request, "columns", 1, kColumnLimit, 300);
  if (!device || !begin || !end || !columns || *begin >= *end || *end - *begin > kLongestSpan) {
    return Refuse(400,
                  "give device=N, begin=S and end=S in seconds since 1970, at most two hours "
                  "apart, and columns=N up to 600",
                  response);
  }
  const MemoryQuestion question{static_cast<int32_t>(*device), *begin, *end,
                                static_cast<int>(*columns)};
  response.set_content(MemoryJson(sampler_, viewer, question), "application/json");
}

void HttpServer::AddRoutes() {
  server_->set_pre_routing_handler([this](const Request& request, Response& response) {
    return Admit(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                    : httplib::Server::HandlerResponse::Handled;
  });
  for (const Asset& asset : Assets()) {
    server_->Get(std::string(asset.path), [&asset](const Request&, Response& response) {
      response.set_content(asset.bytes.data(), asset.bytes.size(), std::string(asset.type));
    });
  }
  server_->Get("/api/now", [this](const Request& request, Response& response) {
    Viewer viewer;
    const auto after = Parameter(request, "events_after", 0, INT64_MAX, 0);
    if (!after) return Refuse(400, "events_after is a number", response);
    if (!FindViewer(request, response, &viewer)) return;
    response.set_content(NowJson(sampler_, viewer, static_cast<uint64_t>(*after)),
                         "application/json");
  });
  server_->Get("/api/memory", [this](const Request& request, Response& response) {
    AnswerMemory(request, response);
  });
  server_->set_error_handler([](const Request&, Response& response) {
    if (response.body.empty() && response.status == 404) {
      Refuse(404, "there is no such page", response);
    }
  });
  server_->set_exception_handler(
      [](const Request&, Response& response, const std::exception_ptr& /*problem*/) {
        Refuse(500, "longwire-web ran out of memory or has a fault; see its log", response);
      });
}

}  // namespace longwire::web
