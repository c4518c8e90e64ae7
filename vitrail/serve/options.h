// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of a server.
#include <functional>
#include <string>
#include <vector>

#include "vitrail/pipeline/model.h"
#include "vitrail/serve/limits.h"

namespace vitrail::serve {

struct ModelSource {
  std::string name;  // in requests
  std::string path;  // as for vitrail::Model
};

struct ServeOptions {
  std::vector<ModelSource> models;     // the first is the default; empty: the bundled models
  ModelOptions model = {};             // threads and precision of all models
  std::string host = "127.0.0.1";      // an address, or localhost
  uint16_t port = 8080;                // 0: any free port
  std::string unix_path = {};          // a Unix socket instead of host and port
  std::string api_key = {};            // requests must carry it, unless empty
  bool public_without_key = false;     // permits an address that is not a loopback address without a key
  std::vector<std::string> cors = {};  // origins whose pages may use the server: "https://example.org"
  bool model_control = false;          // clients may load and unload models
  int64_t batch = 8;                   // images of a batch
  double delay_ms = 0;                 // how long an image waits for others to complete a batch
  int decode_threads = 0;              // 0: as many as the process may use
  Limits limits = {};
  // A line of JSON for each request; called from several threads.  What it throws is a warning, once.
  std::function<void(const std::string& line)> log = {};
};

}  // namespace vitrail::serve
