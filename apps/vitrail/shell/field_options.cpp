// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/shell/field_options.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::app {
namespace {

// "INT:INT in [0 - 8]", as the parser's own validators write the range into the type.
std::string range_type(const std::string& type, auto range, decltype(range) open, const char* without) {
  if (range == open) return type + without;
  if (range.max < open.max) return str(type, ":", type, " in [", range.min, " - ", range.max, "]");
  return range.min == 0 ? type + ":NONNEGATIVE" : type;
}

std::string type_of(IntegerRange range) { return range_type("INT", range, IntegerRange{}, ""); }
std::string type_of(Range range) { return range_type("FLOAT", range, Range{}, ":NUMBER"); }

class OptionAdder : public Fields {
 public:
  OptionAdder(CLI::App& command, const SetField& set, const std::vector<std::string>& only,
              const std::function<void(CLI::Option&)>& each)
      : command_(command), set_(set), only_(only), each_(each) {}

  using Fields::boolean, Fields::number, Fields::choice, Fields::size, Fields::object;
  void boolean(const Field& field, bool&) override {
    if (!wants(field)) return;
    const auto set = [set = set_, name = field.option_name()](int64_t count) {
      set(name, {count > 0 ? "true" : "false"});
    };
    finish(*command_.add_flag_function("--" + field.option_name(), set, field.help));
  }
  void number(const Field& field, double& value, Range range) override { add(field, type_of(range), str(value)); }
  void text(const Field& field, std::string& value) override { add(field, "TEXT", value); }
  void choice(const Field& field, std::string& value, const std::vector<std::string>& allowed) override {
    add(field, "TEXT:{" + join(allowed, ",") + "}", value);
  }
  void integers(const Field& field, std::vector<int64_t>& values, IntegerRange) override {
    add_list(field, "INT", values);
  }
  void numbers(const Field& field, std::vector<double>& values, Range) override { add_list(field, "FLOAT", values); }
  void texts(const Field& field, std::vector<std::string>& values) override { add_list(field, "TEXT", values, false); }
  void size(const Field& field, std::array<int64_t, 2>& values) override { add_list(field, "INT", values); }
  void object(const Field&, const std::function<void(Fields&)>&) override {}
  bool is_set(const Field&, bool) override { return true; }

 protected:
  void visit_integer(const Field& field, int64_t& value, IntegerRange range) override {
    add(field, type_of(range), value == INT64_MAX ? "none" : str(value));
  }
  void reject(const Field&, const std::string&) override {}

 private:
  bool wants(const Field& field) const {
    return only_.empty() || std::ranges::find(only_, field.option_name()) != only_.end();
  }
  void finish(CLI::Option& option) const {
    if (each_) each_(option);
  }

  CLI::Option* add(const Field& field, const std::string& type, const std::string& preset, bool is_list = false) const {
    if (!wants(field)) return nullptr;
    const auto set = [is_list, set = set_, name = field.option_name()](const std::vector<std::string>& texts) {
      try {
        set(name, is_list ? std::vector{join(texts, ",")} : texts);
      } catch (const Error& error) {
        throw CLI::ValidationError(std::string("--") + error.what());
      }
      return true;
    };
    CLI::Option* option = command_.add_option("--" + field.option_name(), set, field.help);
    option->type_name(type)->default_str(preset);
    finish(*option);
    return option;
  }

  template <class Values>
  void add_list(const Field& field, const std::string& type, const Values& values, bool is_list = true) const {
    if (CLI::Option* option = add(field, type, values.empty() ? "" : "[" + join(values, ",") + "]", is_list))
      option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args(false);
  }

  CLI::App& command_;
  const SetField& set_;
  const std::vector<std::string>& only_;
  const std::function<void(CLI::Option&)>& each_;
};

}  // namespace

void add_field_options(CLI::App& command, const std::function<void(Fields&)>& describe, const SetField& set,
                       const std::vector<std::string>& only, const std::function<void(CLI::Option&)>& each) {
  OptionAdder adder(command, set, only, each);
  describe(adder);
}

}  // namespace vitrail::app
