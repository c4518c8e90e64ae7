// SPDX-License-Identifier: Apache-2.0
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "vitrail/base/base64_internal.h"
#include "vitrail/base/env_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/hub/settings_internal.h"

namespace vitrail::hub {
namespace fs = std::filesystem;
namespace {

fs::path home() {
  if (const auto home = environment("HOME")) return *home;
  const passwd* const user = ::getpwuid(::geteuid());
  if (user && user->pw_dir) return user->pw_dir;
  throw Error("hub: the cache's folder", "HF_HUB_CACHE, HF_HOME or HOME in the environment", "none of them");
}

// huggingface_hub expands "~" in these variables too.
fs::path expanded(const std::string& path) {
  if (path == "~") return home();
  return path.starts_with("~/") ? home() / path.substr(2) : fs::path(path);
}

fs::path hub_home() {
  if (const auto folder = environment("HF_HOME")) return expanded(*folder);
  if (const auto folder = environment("XDG_CACHE_HOME")) return expanded(*folder) / "huggingface";
  return home() / ".cache" / "huggingface";
}

bool is_true(const char* name) {
  std::string value = environment(name).value_or("");
  std::ranges::transform(value, value.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

int seconds(const char* name, int fallback) {
  const auto value = environment(name);
  if (!value) return fallback;
  int result = 0;
  const auto parsed = std::from_chars(value->data(), value->data() + value->size(), result);
  if (parsed.ec != std::errc() || parsed.ptr != value->data() + value->size() || result < 1) {
    throw Error(name, "a number of seconds", "\"" + *value + "\"");
  }
  return result;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

// A token becomes part of a header.
std::string checked_token(const std::string& token, const std::string& where) {
  if (std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; })) return token;
  throw Error(where, "a token of printable characters (hf_…)", "other characters");
}

std::string token() {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (const auto value = environment(name)) return checked_token(trimmed(*value), name);
  }
  if (is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return "";
  const auto named = environment("HF_TOKEN_PATH");
  const fs::path file = named ? expanded(*named) : hub_home() / "token";
  std::error_code unreadable;
  if (!fs::is_regular_file(file, unreadable)) return "";
  constexpr size_t kMaxTokenBytes = 4096;
  return checked_token(trimmed(read_text_file(file, kMaxTokenBytes)), file.string());
}

// "%40" is "@" in a URL.
std::string percent_decoded(const std::string& text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char *begin = text.data() + i + 1, *end = text.data() + std::min(i + 3, text.size());
    if (text[i] == '%' && end - begin == 2 && std::from_chars(begin, end, byte, 16).ptr == end) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// Takes "user:password@" out of a URL, also out of a wrong one, and returns the header's value for it.
std::string take_authorization(std::string& url) {
  const size_t scheme = url.find("://"), begin = scheme == url.npos ? 0 : scheme + 3;
  const size_t end = url.find_first_of("/?#", begin), at = url.rfind('@', end);
  if (at == url.npos || at < begin) return "";
  const std::string user = percent_decoded(url.substr(begin, at - begin));
  url.erase(begin, at + 1 - begin);
  return "Basic " + to_base64(std::as_bytes(std::span(user)));
}

void take_endpoint(Settings& settings) {
  std::string url = environment("HF_ENDPOINT").value_or("https://huggingface.co");
  settings.authorization = take_authorization(url);
  while (url.ends_with('/')) url.pop_back();
  const bool printable = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; });
  const bool web = url.starts_with("https://") || url.starts_with("http://");
  if (!web || !printable) throw Error("HF_ENDPOINT", "a URL with https:// or http://", "\"" + url + "\"");
  settings.endpoint = url;
}

}  // namespace

Settings settings_from_environment() {
  Settings settings;
  auto cache = environment("HF_HUB_CACHE");
  if (!cache) cache = environment("HUGGINGFACE_HUB_CACHE");
  settings.cache = cache ? expanded(*cache) : hub_home() / "hub";
  take_endpoint(settings);
  settings.token = token();
  settings.offline = is_true("HF_HUB_OFFLINE") || is_true("TRANSFORMERS_OFFLINE");
  settings.symlinks = !is_true("HF_HUB_DISABLE_SYMLINKS");
  settings.connect_timeout_s = seconds("HF_HUB_ETAG_TIMEOUT", settings.connect_timeout_s);
  settings.stall_timeout_s = seconds("HF_HUB_DOWNLOAD_TIMEOUT", settings.stall_timeout_s);
  return settings;
}

}  // namespace vitrail::hub
