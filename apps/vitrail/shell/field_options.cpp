// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/shell/field_options.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::app {
namespace {

// "INT:INT in [0 - 8]", as the parser's own validators write the range into the type.
std::string range_type(const std::string& type, auto range, const char* open_type = "") {
  const decltype(range) open;
  if (range == open) return type + open_type;
  if (range.max < open.max) return str(type, ":", type, " in [", range.min, " - ", range.max, "]");
  return range.min == 0 ? type + ":NONNEGATIVE" : type;
}

std::string type_of(const Field& field, const FieldValue& value) {
  struct Visitor {
    const Field& field;
    const FieldValue& value;
    std::string operator()(const double*) {
      return range_type("FLOAT", value.numbers, field.nullable ? "" : ":NUMBER");
    }
    std::string operator()(const std::vector<double>*) { return range_type("FLOAT", value.numbers); }
    std::string operator()(const std::array<int64_t, 2>*) { return "INT"; }
    std::string operator()(const std::string*) { return text(); }
    std::string operator()(const std::vector<std::string>*) { return text(); }
    std::string operator()(const bool*) { return ""; }
    std::string operator()(const int64_t*) { return range_type("INT", value.integers); }
    std::string operator()(const std::vector<int64_t>*) { return range_type("INT", value.integers); }
    std::string text() const { return value.allowed.empty() ? "TEXT" : "TEXT:{" + join(value.allowed, ",") + "}"; }
  };
  return std::visit(Visitor{field, value}, value.member);
}

class OptionAdder : public Fields {
 public:
  OptionAdder(CLI::App& command, const SetField& set, const std::vector<std::string>& only,
              const std::function<void(CLI::Option&)>& each)
      : command_(command), set_(set), only_(only), each_(each) {}

  using Fields::object;
  void object(const Field&, const std::function<void(Fields&)>&) override {}
  bool is_set(const Field&, bool) override { return true; }

 protected:
  void visit(const Field& field, const FieldValue& value) override {
    if (!only_.empty() && std::ranges::find(only_, field.option_name()) == only_.end()) return;
    CLI::Option& option = std::holds_alternative<bool*>(value.member) ? add_flag(field) : add_option(field, value);
    if (each_) each_(option);
  }

 private:
  CLI::Option& add_flag(const Field& field) {
    const auto assign = [set = set_, name = field.option_name()](int64_t count) {
      set(name, {count > 0 ? "true" : "false"});
    };
    return *command_.add_flag_function("--" + field.option_name(), assign, field.help);
  }

  CLI::Option& add_option(const Field& field, const FieldValue& value) {
    const bool joins = value.is_list() && !value.is_any_texts();
    const auto assign = [joins, set = set_, name = field.option_name()](const std::vector<std::string>& texts) {
      try {
        set(name, joins ? std::vector{join(texts, ",")} : texts);
      } catch (const Error& error) {
        throw CLI::ValidationError(std::string("--") + error.what());
      }
      return true;
    };
    CLI::Option* option = command_.add_option("--" + field.option_name(), assign, field.help);
    option->type_name(type_of(field, value))->default_str(default_of(field, value));
    if (value.is_list()) option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args(false);
    return *option;
  }

  static std::string default_of(const Field& field, const FieldValue& value) {
    const auto* const integer = std::get_if<int64_t*>(&value.member);
    if (integer && **integer == INT64_MAX) return "none";
    const std::string preset = preset_of(field, value);
    return value.is_list() && !preset.empty() ? "[" + preset + "]" : preset;
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

void add_field_options(CLI::App& command, const std::function<void(Fields&)>& describe,
                       const std::vector<std::string>& only, const std::function<void(CLI::Option&)>& each) {
  const auto set = [describe](const std::string& option, const std::vector<std::string>& texts) {
    set_field(describe, option, texts);
  };
  add_field_options(command, describe, set, only, each);
}

}  // namespace vitrail::app
