// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/request_log_internal.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <random>

#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::serve {
namespace {

constexpr size_t kMaxRequestId = 128;

// W3C Trace Context: version-trace-parent-flags.  Other text is not logged.
std::string valid_traceparent(std::string_view text) {
  const bool valid = text.size() == 55 && std::ranges::all_of(text, [](char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-';
                     });
  return valid ? std::string(text) : "";
}

// The client's, if it is a word; else one that no other request has.
std::string request_id_of(std::string_view given) {
  const auto is_visible = [](char c) { return c > ' ' && c < 127; };
  if (!given.empty() && given.size() <= kMaxRequestId && std::ranges::all_of(given, is_visible))
    return std::string(given);
  static const uint32_t process = std::random_device()();
  static std::atomic<uint64_t> numbers{0};
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%08x-%llu", process, static_cast<unsigned long long>(++numbers));
  return text.data();
}

// "2026-01-31T12:00:00.123Z"
std::string time_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03dZ", static_cast<int>(milliseconds % 1000));
  return std::string(text.data()) + fraction.data();
}

}  // namespace

LogEntry log_entry_of(const HttpRequest& head, const std::string& route) {
  return {.route = route,
          .method = head.method,
          .model = {},
          .client = head.client,
          .request_id = request_id_of(head.header("x-request-id")),
          .traceparent = valid_traceparent(head.header("traceparent"))};
}

std::string log_line(const LogEntry& entry) {
  const auto rounded = [](double value) { return std::round(value * 1e6) / 1e6; };
  nlohmann::ordered_json line{{"time", time_now()}, {"route", entry.route}, {"method", entry.method}};
  if (!entry.model.empty()) line["model"] = entry.model;
  line["status"] = entry.status;
  if (!entry.error.empty()) line["error"] = entry.error;
  if (!entry.client.empty()) line["client"] = entry.client;
  line["request_id"] = entry.request_id;
  line["request_bytes"] = entry.request_bytes;
  line["response_bytes"] = entry.response_bytes;
  line["seconds"] = rounded(entry.times.total);
  line["decode_seconds"] = rounded(entry.times.decode);
  line["queue_seconds"] = rounded(entry.times.queue);
  line["model_seconds"] = rounded(entry.times.model);
  if (!entry.traceparent.empty()) line["traceparent"] = entry.traceparent;
  return pipeline::json_line(line);
}

}  // namespace vitrail::serve
