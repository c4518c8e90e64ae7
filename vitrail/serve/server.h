// SPDX-License-Identifier: Apache-2.0
#pragma once
// A server of models over HTTP/1.1: images in, the results of the command line out.
//
//   vitrail::serve::Server server({.models = {{"photos", "runs/photos"}}, .port = 0});
//   server.load();
//   … requests to 127.0.0.1:server.port() …
//   server.drain();
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/serve/options.h"

namespace vitrail::serve {

// Thread-safe.
class Server {
 public:
  // Listens, and responds with 503 until load() returns.  Throws Error for options that do not fit together, for an
  // address that others can reach without a key, and if the address cannot be used.
  explicit Server(ServeOptions options);
  ~Server();  // closes all connections
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Opens all models and runs a forward pass of each.  Another call replaces them: requests that are being computed
  // keep the models that they began with.  If it throws, the models before remain.
  void load();
  // Accepts no more connections, and returns when the requests in flight have their responses, or after the time limit.
  // Returns whether all had.
  bool drain();

  uint16_t port() const;
  // Whether requests are served: models are loaded, their files are as they were, and drain() has not begun.
  bool ready() const;
  // The models whose files have changed.  They cannot be used until load() succeeds.
  std::vector<std::string> changed_models() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace vitrail::serve
