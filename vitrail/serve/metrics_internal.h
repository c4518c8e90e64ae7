// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counters and histograms, written in the text format of Prometheus (version 0.0.4).
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace vitrail::serve {

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void add(double value);
  // labels: `route="classify"`, or empty.
  void write(const std::string& name, const std::string& labels, std::string& text) const;

 private:
  std::vector<double> bounds_;    // upper limits, ascending
  std::vector<uint64_t> counts_;  // per bucket; the last has no limit
  double sum_ = 0;
};

// Thread-safe.
class Metrics {
 public:
  Metrics();

  // model: empty for a request without one.
  void count_request(const std::string& route, int status, double seconds, const std::string& model = "");
  void count_departed(const std::string& route);
  void count_image(bool succeeded);
  void count_embedding(bool known);  // known: it was kept
  void add_decode(double seconds);
  void add_queue(double seconds);
  void add_batch(size_t images, double model_seconds);

  // What the server knows.
  struct Gauge {
    std::string name, help;
    double value;
    std::string labels = {};
    const char* type = "gauge";
  };
  std::string text(const std::vector<Gauge>& gauges) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, int, std::string>, uint64_t> requests_;  // by route, status and model
  std::map<std::string, uint64_t> departed_;                                // by route
  std::map<std::pair<std::string, std::string>, Histogram> seconds_;        // by route and model
  uint64_t images_ = 0, failed_images_ = 0, known_embeddings_ = 0, new_embeddings_ = 0;
  Histogram decode_, queue_, model_, batch_;
};

}  // namespace vitrail::serve
