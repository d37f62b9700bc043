// The page and its answers over HTTP, or over TLS with users' certificates. It only reads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "link/certificates/address.h"
#include "link/transport/tls_files.h"
#include "web/sampler.h"
#include "web/viewer.h"

namespace httplib {
class Server;
struct Request;
struct Response;
}  // namespace httplib

namespace longwire::web {

class HttpServer {
 public:
  HttpServer(Sampler& sampler, Viewers& viewers);
  ~HttpServer();

  // Listens. `tls`: nullptr for none. `hosts`: the names by which browsers may call it, lower case;
  // with any other a page from elsewhere could read the answers (DNS rebinding). False with a
  // sentence.
  bool Open(const transport::Address& address, const transport::TlsMaterial* tls,
            std::vector<std::string> hosts, std::string* sentence);
  int port() const { return port_; }
  // Until Stop, from another thread.
  void Serve();
  void Stop();

 private:
  void SetLimits();
  void AddRoutes();
  // True if the request may go on; else the response says why not.
  bool Admit(const httplib::Request& request, httplib::Response& response) const;
  bool FindViewer(const httplib::Request& request, httplib::Response& response, Viewer* viewer);
  void AnswerMemory(const httplib::Request& request, httplib::Response& response);

  Sampler& sampler_;
  Viewers& viewers_;
  std::vector<std::string> hosts_;
  bool tls_ = false;
  int port_ = 0;
  std::unique_ptr<httplib::Server> server_;
};

}  // namespace longwire::web
