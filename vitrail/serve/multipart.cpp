// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/serve/ignoring_case_internal.h"
#include "vitrail/serve/multipart_internal.h"

namespace vitrail::serve {
namespace {

constexpr size_t kMaxBoundary = 70;  // RFC 2046, section 5.1.1
constexpr size_t kMaxPartHeader = 8192;

Error damaged(const std::string& what) { return Error("multipart", "parts between boundaries", what); }

// The quoted or plain value at `at`, which moves behind it.
std::string take_value(std::string_view header, size_t& at) {
  std::string value;
  if (!header.substr(at).starts_with('"')) {
    const size_t end = std::min(header.find_first_of("; \t", at), header.size());
    value = header.substr(at, end - at);
    at = end;
    return value;
  }
  for (++at; at < header.size() && header[at] != '"'; ++at) {
    if (header[at] == '\\' && at + 1 < header.size()) ++at;
    value += header[at];
  }
  at = std::min(at + 1, header.size());
  return value;
}

// The value of a parameter as `; name="value"`; empty without it.
std::string parameter(std::string_view header, std::string_view name) {
  size_t at = std::min(header.find(';'), header.size());
  while (at < header.size()) {
    at = std::min(header.find_first_not_of("; \t", at), header.size());
    const size_t equals = header.find('=', at);
    if (equals == header.npos) break;
    const bool found = equal_ignoring_case(header.substr(at, equals - at), name);
    at = equals + 1;
    const std::string value = take_value(header, at);
    if (found) return value;
  }
  return "";
}

Part parse_part(std::string_view text) {
  const size_t end = text.find("\r\n\r\n");
  if (end == text.npos || end > kMaxPartHeader) throw damaged("a part without headers");
  Part part;
  part.content = text.substr(end + 4);
  bool has_disposition = false;
  for (std::string_view headers = text.substr(0, end); !headers.empty();) {
    const size_t line_end = std::min(headers.find("\r\n"), headers.size());
    const std::string_view line = headers.substr(0, line_end);
    headers.remove_prefix(std::min(line_end + 2, headers.size()));
    if (!equal_ignoring_case(line.substr(0, line.find(':')), "content-disposition")) continue;
    has_disposition = true;
    part.name = parameter(line, "name");
    part.filename = parameter(line, "filename");
  }
  if (!has_disposition) throw damaged("a part without Content-Disposition");
  return part;
}

}  // namespace

std::vector<Part> parse_multipart(std::string_view body, std::string_view content_type, size_t max_parts) {
  const std::string boundary = parameter(content_type, "boundary");
  if (boundary.empty() || boundary.size() > kMaxBoundary) throw damaged("no boundary of 1 to 70 characters");
  const std::string delimiter = "\r\n--" + boundary;
  std::vector<Part> parts;
  size_t at = 0;
  if (!body.starts_with(std::string_view(delimiter).substr(2))) {
    at = body.find(delimiter);
    if (at == body.npos) throw damaged("no boundary in the body");
    at += 2;
  }
  at += delimiter.size() - 2;
  while (true) {  // `at` follows a boundary
    if (body.substr(at).starts_with("--")) return parts;
    if (!body.substr(at).starts_with("\r\n")) throw damaged("other characters after a boundary");
    at += 2;
    const size_t end = body.find(delimiter, at);
    if (end == body.npos) throw damaged("no boundary at the end");
    if (parts.size() == max_parts) throw Error("multipart", "at most " + std::to_string(max_parts) + " parts", "more");
    parts.push_back(parse_part(body.substr(at, end - at)));
    at = end + delimiter.size();
  }
}

}  // namespace vitrail::serve
