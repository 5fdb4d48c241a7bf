#include "convert.h"

#include "base/error.h"
#include "data/memory.h"

namespace echelon::python {

namespace {

Option option_from(const py::handle& value, const std::string& where) {
  if (py::isinstance<py::bool_>(value)) return {value.cast<bool>(), {}};
  if (py::isinstance<py::int_>(value)) return {value.cast<std::int64_t>(), {}};
  if (py::isinstance<py::float_>(value)) return {value.cast<double>(), {}};
  if (py::isinstance<py::str>(value)) return {value.cast<std::string>(), {}};
  if (py::isinstance<py::dict>(value))
    return {std::make_shared<Options>(options_from(py::reinterpret_borrow<py::dict>(value), where)), {}};
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    Option::List list;
    for (const py::handle element : value)
      list.push_back(option_from(element, fmt::format("{}[{}]", where, list.size())));
    return {std::move(list), {}};
  }
  if (py::hasattr(value, "__fspath__")) return {py::str(value.attr("__fspath__")()).cast<std::string>(), {}};
  if (py::hasattr(value, "item")) return option_from(value.attr("item")(), where);  // a NumPy number
  throw py::type_error(fmt::format("{}: a {} is no setting; settings are bool, int, float, str, list and dict", where,
                                   py::str(py::type::handle_of(value).attr("__name__")).cast<std::string>()));
}

// Holds a Python object for code that does not hold the lock.
std::shared_ptr<const void> keeper_of(const py::object& object) {
  return {new py::object(object), [](const void* p) {
            const py::gil_scoped_acquire lock;
            delete static_cast<const py::object*>(p);
          }};
}

data::Element element_of(const py::array& array, const std::string& name) {
  using data::Element;
  const char kind = array.dtype().kind();
  const auto size = array.itemsize();
  const bool native = array.dtype().byteorder() != '>';
  if (native && kind == 'f' && size == 4) return Element::f32;
  if (native && kind == 'f' && size == 8) return Element::f64;
  if (native && (kind == 'u' || kind == 'b') && size == 1) return Element::u8;
  if (native && kind == 'u') return size == 2 ? Element::u16 : size == 4 ? Element::u32 : Element::u64;
  if (native && kind == 'i')
    return size == 1 ? Element::i8 : size == 2 ? Element::i16 : size == 4 ? Element::i32 : Element::i64;
  throw py::type_error(fmt::format("{}: an array of {} cannot be read where it lies; convert it with astype('float32')",
                                   name, py::str(array.dtype()).cast<std::string>()));
}

template <typename T>
void copy_into(const py::handle& value, const data::Field& field, std::uint64_t index, std::byte* out) {
  const auto array = py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(value);
  if (!array) throw py::error_already_set();
  if (array.size() != field.shape.elements())
    throw py::value_error(fmt::format("sample {}: the field {} has {} numbers, but sample 0 had {}", index, field.name,
                                      array.size(), field.shape.elements()));
  std::memcpy(out, array.data(), field.bytes());
}

// Samples that Python code computes.
class PythonDataset : public data::Dataset {
 public:
  PythonDataset(data::DatasetInfo info, const py::object& object)
      : Dataset(std::move(info)), object_(object), keeper_(keeper_of(object)) {}

  void get(std::uint64_t index, const data::SampleContext&, data::SampleRef out) const override {
    const py::gil_scoped_acquire lock;
    const py::object item = object_.attr("__getitem__")(index);
    const bool pair = fields().size() > 1;
    if (pair && (!py::isinstance<py::sequence>(item) || py::len(item) != fields().size()))
      throw py::value_error(fmt::format("sample {}: __getitem__ returned no pair (input, target)", index));
    for (std::size_t i = 0; i < fields().size(); ++i) {
      const data::Field& field = fields()[i];
      const py::object value = pair ? py::object(item[py::int_(i)]) : item;
      if (field.dtype == DType::i32)
        copy_into<std::int32_t>(value, field, index, out[i]);
      else
        copy_into<float>(value, field, index, out[i]);
    }
  }

 private:
  const py::handle object_;
  const std::shared_ptr<const void> keeper_;
};

template <typename T>
py::array to_array(std::span<const T> numbers, const Shape& shape) {
  py::array_t<T> out(std::vector<py::ssize_t>(shape.dims().begin(), shape.dims().end()));
  std::copy(numbers.begin(), numbers.end(), out.mutable_data());
  return out;
}

}  // namespace

Options options_from(const py::dict& dict, const std::string& where) {
  Options options;
  options.where = where;
  for (const auto& [key, value] : dict) {
    if (!py::isinstance<py::str>(key))
      throw py::type_error(fmt::format("{}: the key {} is no text", where.empty() ? "recipe" : where,
                                       py::repr(key).cast<std::string>()));
    const std::string name = key.cast<std::string>();
    if (!value.is_none()) options.items[name] = option_from(value, where.empty() ? name : where + "." + name);
  }
  return options;
}

py::object from_json(const std::string& text) { return py::module_::import("json").attr("loads")(text); }

data::Array array_from(const py::array& array, const std::string& name) {
  const data::Element element = element_of(array, name);
  const auto rank = array.ndim();
  if (rank < 1 || rank > static_cast<py::ssize_t>(Shape::max_rank))
    throw py::type_error(fmt::format("{}: an array of samples has 1 to {} dimensions, not {}", name,
                                     static_cast<int>(Shape::max_rank), rank));
  std::vector<std::int64_t> sample;
  py::ssize_t dense = array.itemsize();
  for (py::ssize_t axis = rank - 1; axis > 0; --axis) {
    if (array.shape(axis) < 1) throw py::type_error(fmt::format("{}: axis {} is empty", name, axis));
    if (array.shape(axis) > 1 && array.strides(axis) != dense)
      throw py::type_error(
          fmt::format("{}: the numbers of a sample do not lie side by side; use numpy.ascontiguousarray", name));
    dense *= array.shape(axis);
    sample.insert(sample.begin(), array.shape(axis));
  }
  const py::ssize_t count = array.shape(0), stride = count > 1 ? array.strides(0) : dense;
  if (count < 1) throw py::type_error(fmt::format("{}: there is no sample in it", name));
  if (stride < dense)
    throw py::type_error(fmt::format("{}: samples lie backwards or on each other; use numpy.ascontiguousarray", name));
  const auto* first = static_cast<const std::byte*>(array.data());
  const auto bytes = static_cast<std::size_t>((count - 1) * stride + dense);
  return {.source = data::borrowed_source(name, {first, bytes}, keeper_of(array)),
          .element = element,
          .big_endian = false,
          .count = static_cast<std::uint64_t>(count),
          .sample = Shape(sample),
          .offset = 0,
          .stride = static_cast<std::uint64_t>(stride)};
}

data::DatasetPtr dataset_from(const py::object& object, data::DatasetInfo info) {
  return std::make_shared<PythonDataset>(std::move(info), object);
}

py::tuple sample_of(const data::Dataset& dataset, std::uint64_t index) {
  if (index >= dataset.size()) throw py::index_error(fmt::format("there are {} samples", dataset.size()));
  data::Sample sample(dataset.fields());
  {
    const py::gil_scoped_release other_threads_run;
    dataset.get(index, {}, sample.ref());
  }
  py::tuple out(dataset.fields().size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const data::Field& field = dataset.fields()[i];
    out[i] = field.dtype == DType::i32 ? to_array<std::int32_t>(sample.field<std::int32_t>(i), field.shape)
                                       : to_array<float>(sample.field<float>(i), field.shape);
  }
  return out;
}

}  // namespace echelon::python
