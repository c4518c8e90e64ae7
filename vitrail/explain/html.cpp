// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/base/base64_internal.h"
#include "vitrail/base/digest_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/explain/html_internal.h"
#include "vitrail/explain/page_files_internal.h"

namespace vitrail::explain {
namespace {

using Json = nlohmann::ordered_json;

std::string_view page_file(std::string_view name) {
  return std::ranges::find(learning_page_files(), name, &EmbeddedFile::name)->text;
}

// All scripts in one function, which may wait for decompression.
std::string script() {
  std::string text = "\"use strict\";\n(async () => {\n";
  for (const EmbeddedFile& file : learning_page_files())
    if (file.name.ends_with(".js")) text += file.text;
  return text + "})();\n";
}

// JSON inside an element <script>: no text ends it, and none begins a comment of HTML.
std::string data_element(const std::string& id, const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != text.npos; at += 6) text.replace(at, 1, "\\u003c");
  return str("<script type=\"application/json\" id=\"", id, "\">", text, "</script>\n");
}

std::string policy_of(const std::string& script) {
  const std::string hex = sha256(std::as_bytes(std::span(script)));
  std::vector<std::byte> digest;
  for (size_t i = 0; i < hex.size(); i += 2)
    digest.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return str("default-src 'none'; script-src 'sha256-", to_base64(digest),
             "'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'");
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const std::string_view entity = c == '&'   ? "&amp;"
                                    : c == '<' ? "&lt;"
                                    : c == '>' ? "&gt;"
                                    : c == '"' ? "&quot;"
                                               : "";
    entity.empty() ? result.push_back(c) : void(result.append(entity));
  }
  return result;
}

}  // namespace

std::string page_html(const std::string& title, const Json& manifest, const Arrays& arrays) {
  Json texts;
  for (const std::string_view language : {"en", "zh"}) texts[std::string(language)] = Json::parse(page_file(language));
  const std::string code = script();
  const std::vector<std::pair<std::string_view, std::string>> parts{
      {"{{language}}", manifest.at("language").get<std::string>()},
      {"{{title}}", escaped(title)},
      {"{{policy}}", policy_of(code)},
      {"{{style}}", std::string(page_file("style.css"))},
      {"{{data}}", data_element("manifest", manifest) + data_element("texts", texts) + arrays.elements()},
      {"{{script}}", code},
  };
  const std::string_view frame = page_file("page.html");
  std::string html;
  for (size_t at = 0; at < frame.size();) {  // in one pass: data may contain a placeholder
    size_t next = frame.size();
    const std::pair<std::string_view, std::string>* found = nullptr;
    for (const auto& part : parts)
      if (const size_t place = frame.find(part.first, at); place < next) next = place, found = &part;
    html += frame.substr(at, next - at);
    if (found) html += found->second;
    at = found ? next + found->first.size() : next;
  }
  return html;
}

}  // namespace vitrail::explain
