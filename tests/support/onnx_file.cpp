// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_file.h"

#include <algorithm>
#include <cstring>
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

// A number of 4 bytes; `number` holds those of other fields.
float real_of(std::string_view bytes) {
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

OnnxFile::Node node_of(const Message& message) {
  enum : int64_t { kFloat = 1, kInt = 2, kString = 3, kInts = 7 };
  OnnxFile::Node node{message.text(4), message.texts(2).back(), message.texts(1)};
  for (const std::string_view bytes : message.all(5)) {
    const Message attribute(bytes);
    const std::string name = attribute.text(1);
    const int64_t type = attribute.number(20);
    if (type == kFloat) node.numbers[name] = {real_of(attribute.bytes(2))};
    if (type == kInt) node.numbers[name] = {static_cast<double>(attribute.number(3))};
    if (type == kString) node.texts[name] = attribute.text(4);
    if (type != kInts) continue;
    for (const int64_t value : attribute.numbers(8)) node.numbers[name].push_back(static_cast<double>(value));
  }
  return node;
}

template <class T>
std::vector<double> numbers_of(std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return {values.begin(), values.end()};
}

// `outside`: the bytes of external tensors.
OnnxFile::Constant constant_of(const Message& tensor, std::string_view outside) {
  std::string_view bytes = tensor.bytes(9);
  if (tensor.number(14) == 1) {
    std::map<std::string, std::string> entries;
    for (const std::string_view entry : tensor.all(13)) entries[Message(entry).text(1)] = Message(entry).text(2);
    bytes = outside.substr(std::stoul(entries.at("offset")), std::stoul(entries.at("length")));
  }
  OnnxFile::Constant constant{tensor.number(2), tensor.numbers(1)};
  constant.values = constant.type == 1   ? numbers_of<float>(bytes)
                    : constant.type == 7 ? numbers_of<int64_t>(bytes)
                    : constant.type == 3 ? numbers_of<int8_t>(bytes)
                                         : numbers_of<uint8_t>(bytes);
  return constant;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

int64_t OnnxFile::count(const std::string& op) const {
  return std::count_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.op == op; });
}

OnnxFile read_onnx(const std::filesystem::path& path) {
  const std::string content = content_of(path), outside = content_of(path.string() + ".data");
  const Message model(content), graph = model.message(7);
  OnnxFile file;
  file.ir_version = model.number(1);
  file.opset = model.message(8).number(2);
  file.producer = model.text(2);
  for (const std::string_view bytes : model.all(14)) file.metadata[Message(bytes).text(1)] = Message(bytes).text(2);
  for (const std::string_view bytes : graph.all(1)) {
    file.nodes.push_back(node_of(Message(bytes)));
  }
  for (const std::string_view bytes : graph.all(5)) {
    const Message tensor(bytes);
    file.constants[tensor.text(8)] = constant_of(tensor, outside);
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
