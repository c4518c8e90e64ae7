// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string_view>

namespace vitrail::testing {
namespace {

// A message of Protocol Buffers: its fields in their order.
class Message {
 public:
  explicit Message(std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t tag = varint(bytes);
      Field field{static_cast<int>(tag >> 3), 0, {}};
      switch (tag & 7) {
        case 0:
          field.number = static_cast<int64_t>(varint(bytes));
          break;
        case 2:
          field.bytes = taken(bytes, varint(bytes));
          break;
        case 5:
          field.bytes = taken(bytes, 4);
          break;
        default:
          throw std::runtime_error("a wire type that ONNX files do not have");
      }
      fields_.push_back(field);
    }
  }

  std::vector<std::string_view> all(int id) const {
    std::vector<std::string_view> values;
    for (const Field& field : fields_) {
      if (field.id == id) values.push_back(field.bytes);
    }
    return values;
  }
  std::vector<std::string> texts(int id) const {
    const auto values = all(id);
    return {values.begin(), values.end()};
  }
  std::string_view bytes(int id) const { return all(id).empty() ? std::string_view() : all(id).front(); }
  std::string text(int id) const { return std::string(bytes(id)); }
  Message message(int id) const { return Message(bytes(id)); }
  bool has(int id) const { return !all(id).empty(); }
  std::vector<int64_t> numbers(int id) const {
    std::vector<int64_t> values;
    for (const Field& field : fields_) {
      if (field.id == id) values.push_back(field.number);
    }
    return values;
  }
  int64_t number(int id) const { return numbers(id).empty() ? 0 : numbers(id).front(); }

 private:
  struct Field {
    int id;
    int64_t number;
    std::string_view bytes;
  };

  static uint64_t varint(std::string_view& from) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(taken(from, 1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  static std::string_view taken(std::string_view& from, uint64_t size) {
    if (size > from.size()) throw std::runtime_error("a field that ends behind its message");
    const std::string_view result = from.substr(0, size);
    from.remove_prefix(size);
    return result;
  }

  std::vector<Field> fields_;
};

OnnxFile::Value value_of(const Message& value) {
  const Message tensor = value.message(2).message(1);
  OnnxFile::Value result{value.text(1), tensor.number(1), {}};
  for (const std::string_view bytes : tensor.message(2).all(1)) {
    const Message extent(bytes);
    result.shape.push_back(extent.has(2) ? extent.text(2) : std::to_string(extent.number(1)));
  }
  return result;
}

}  // namespace

int64_t OnnxFile::count(const std::string& op) const {
  return std::count_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.op == op; });
}

OnnxFile read_onnx(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  const Message model(content), graph = model.message(7);
  OnnxFile file;
  for (const std::string_view bytes : model.all(14)) file.metadata[Message(bytes).text(1)] = Message(bytes).text(2);
  for (const std::string_view bytes : graph.all(1)) {
    const Message node(bytes);
    file.nodes.push_back({node.text(4), node.text(2), node.texts(1)});
  }
  for (const std::string_view bytes : graph.all(5)) {
    const Message tensor(bytes);
    file.constants[tensor.text(8)] = {tensor.number(2), tensor.numbers(1)};
  }
  for (const std::string_view bytes : graph.all(11)) file.inputs.push_back(value_of(Message(bytes)));
  for (const std::string_view bytes : graph.all(12)) file.outputs.push_back(value_of(Message(bytes)));
  return file;
}

std::string graph_errors(const OnnxFile& file) {
  std::string errors;
  std::set<std::string> known, read;
  const auto define = [&](const std::string& name) {
    if (!known.insert(name).second) errors += name + " has two sources\n";
  };
  for (const auto& input : file.inputs) define(input.name);
  for (const auto& [name, constant] : file.constants) define(name);
  for (const auto& node : file.nodes) {
    for (const std::string& input : node.inputs) {
      if (!input.empty() && known.count(input) == 0) errors += node.output + " reads " + input + " before its source\n";
      read.insert(input);
    }
    define(node.output);
  }
  for (const auto& output : file.outputs) {
    if (known.count(output.name) == 0) errors += output.name + " has no source\n";
    read.insert(output.name);
  }
  for (const std::string& name : known) {
    if (read.count(name) == 0) errors += name + " has no reader\n";
  }
  return errors;
}

}  // namespace vitrail::testing
