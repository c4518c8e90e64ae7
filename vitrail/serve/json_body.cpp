// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/json_body_internal.h"

#include <set>
#include <vector>

namespace vitrail::serve {
namespace {

using nlohmann::json;

constexpr size_t kMaxValues = size_t{1} << 24;

// Counts what the parser reports, so that a small body cannot exhaust memory or the stack.  A pass of its own: the
// library's parser with a callback takes time that grows with the square of the objects in an array.
class Watch : public nlohmann::json_sax<json> {
 public:
  explicit Watch(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(json::number_integer_t) override { return count(); }
  bool number_unsigned(json::number_unsigned_t) override { return count(); }
  bool number_float(json::number_float_t, const std::string&) override { return count(); }
  bool string(std::string&) override { return count(); }
  bool binary(json::binary_t&) override { return count(); }
  bool start_object(size_t) override {
    keys_.emplace_back();
    return open();
  }
  bool end_object() override {
    keys_.pop_back();
    return close();
  }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (!keys_.back().insert(name).second) {
      throw HttpError(400,
                      "JSON with a duplicate key: " + json(name).dump(-1, ' ', true, json::error_handler_t::replace));
    }
    return true;
  }
  bool parse_error(size_t, const std::string&, const json::exception&) override { return false; }  // parse() tells it

 private:
  bool count() {
    if (++values_ > kMaxValues) throw HttpError(400, str("JSON with more than ", kMaxValues, " values"));
    return true;
  }
  bool open() {
    if (++depth_ > max_depth_) {
      throw HttpError(400, str("JSON that is nested more than ", max_depth_, " levels deep"));
    }
    return count();
  }
  bool close() {
    --depth_;
    return true;
  }

  int max_depth_, depth_ = 0;
  size_t values_ = 0;
  std::vector<std::set<std::string>> keys_;  // the keys of the open objects
};

std::string option_value(const std::string& name, const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  throw Error(name, "a text, a number, true or false", value.type_name());
}

}  // namespace

json parse_json(std::string_view text, int max_depth) {
  Watch watch(max_depth);
  try {
    static_cast<void>(json::sax_parse(text, &watch));
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw HttpError(400, str("malformed JSON at byte ", error.byte));
  } catch (const json::exception&) {
    throw HttpError(400, "malformed JSON: a number that is out of range");
  }
}

const json& member(const json& object, const std::string& name) {
  if (!object.is_object()) throw Error("body", "a JSON object", object.type_name());
  const auto found = object.find(name);
  if (found == object.end()) throw Error("body", "the member \"" + name + "\"", "none");
  return *found;
}

std::string text_member(const json& object, const std::string& name, const std::string& preset) {
  if (!object.is_object()) throw Error("body", "a JSON object", object.type_name());
  const auto found = object.find(name);
  if (found == object.end()) return preset;
  if (!found->is_string()) throw Error(name, "a text", found->type_name());
  return found->get<std::string>();
}

void add_options(const json& object, const std::string& except, RequestOptions& options) {
  for (const auto& [name, value] : object.items()) {
    if (name == except) continue;
    if (!value.is_array()) {
      options.add(name, option_value(name, value));
      continue;
    }
    for (const json& element : value) options.add(name, option_value(name, element));
  }
}

}  // namespace vitrail::serve
