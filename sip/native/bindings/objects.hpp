#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <exception>
#include <string_view>

/// Making the objects of `sip.message.message` and `sip.message.fields`, whose classes stay where they are:
/// in Python.
namespace trunkline::wire {

namespace nb = nanobind;

/// Raise an error of Python.
[[noreturn]] void refuse(nb::handle error, const char* text);

/// What a function of Python's C interface has made; its error is raised.
nb::object owned(PyObject* made);

/// Run `function`, which may throw, for a slot of a class: an error of it becomes that of Python.
template <class Function>
PyObject* guarded(Function function) {
    try {
        return function().release().ptr();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

nb::object to_str(std::string_view ascii);
nb::object to_lower_str(std::string_view ascii);
nb::object none_or_str(std::string_view ascii);

/// A class with `__slots__` whose instances are made without running its `__init__`: what goes in has been
/// checked by whoever read it.
template <std::size_t count>
class Shape {
  public:
    /// Throws nb::type_error when the class has no slot of one of these names.
    Shape(nb::handle type, const std::array<const char*, count>& slots) : type_(nb::borrow(type)) {
        for (std::size_t index = 0; index < count; ++index)
            offsets_[index] = offset_of(type, slots[index]);
    }

    /// A new instance; the values come in the order of the slots.
    template <class... Values>
    nb::object make(Values&&... values) const {
        static_assert(sizeof...(values) == count);
        auto* const type = reinterpret_cast<PyTypeObject*>(type_.ptr());
        nb::object made = nb::steal(type->tp_alloc(type, 0));
        if (!made.is_valid()) nb::raise_python_error();
        std::size_t index = 0;
        ((slot(made, offsets_[index++]) = values.release().ptr()), ...);
        return made;
    }

  private:
    static Py_ssize_t offset_of(nb::handle type, const char* name);
    static PyObject*& slot(const nb::object& made, Py_ssize_t offset) {
        return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(made.ptr()) + offset);
    }

    nb::object type_;
    std::array<Py_ssize_t, count> offsets_{};
};

/// Offset of the slot `name` in instances of `type`; throws nb::type_error when there is none.
Py_ssize_t slot_offset(nb::handle type, const char* name);

template <std::size_t count>
Py_ssize_t Shape<count>::offset_of(nb::handle type, const char* name) {
    return slot_offset(type, name);
}

}  // namespace trunkline::wire
