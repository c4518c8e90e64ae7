// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts and durations of each model, in the form of Triton's extension `statistics`.
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

namespace vitrail::serve {

// The seconds that a request took: decoding, waiting and computing of its slowest image, the response, and all.
struct RequestTimes {
  double decode = 0, queue = 0, model = 0, output = 0, total = 0;
};

// Thread-safe.
class ModelStatistics {
 public:
  void add_request(const std::string& model, bool succeeded, const RequestTimes& times);
  void add_batch(const std::string& model, size_t images, double seconds);

  // An element of "model_stats".
  nlohmann::ordered_json json(const std::string& model, const std::string& version) const;

 private:
  struct Duration {
    uint64_t count = 0, ns = 0;
    void add(double seconds);
    nlohmann::ordered_json json() const { return {{"count", count}, {"ns", ns}}; }
  };
  struct Entry {
    uint64_t last_inference = 0;  // milliseconds since 1970
    uint64_t images = 0, batches = 0;
    Duration success, fail, queue, input, infer, output;
    std::map<size_t, Duration> by_batch;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace vitrail::serve
