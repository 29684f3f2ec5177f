#include "values.hpp"

#include <structmember.h>

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace trunkline::bindings {

namespace {

/// One parameter of a constructor, and the slot that its argument goes to.
struct Parameter {
    nb::object name;
    Py_ssize_t offset = 0;
    /// Value of an argument that is left out, or what makes one; neither is there
    /// for one that must be given.
    nb::object fallback, factory;
};

struct Layout {
    std::vector<Parameter> parameters;
    /// Number of those that may be given by place.
    std::size_t positional = 0;
    bool has_post_init = false;
};

/// By class. Never freed: a class that is made at import lives until the
/// process ends, and one that is gone leaves an entry that is replaced when its
/// address comes again.
std::unordered_map<PyTypeObject*, Layout>& layouts() {
    static auto& all = *new std::unordered_map<PyTypeObject*, Layout>;
    return all;
}

PyObject*& slot(PyObject* made, const Parameter& parameter) {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(made) + parameter.offset);
}

/// The parameter of a name, which is sought from `place` on: names mostly come
/// in the order of parameters.
const Parameter* named(const Layout& layout, PyObject* name, std::size_t place) {
    const std::size_t count = layout.parameters.size();
    for (std::size_t step = 0; step < count; ++step) {
        const Parameter& parameter = layout.parameters[(place + step) % count];
        if (parameter.name.ptr() == name) return &parameter;
    }
    for (const Parameter& parameter : layout.parameters) {
        if (PyUnicode_Compare(parameter.name.ptr(), name) == 0) return &parameter;
    }
    return nullptr;
}

/// Puts the arguments into their slots; false when they do not fit.
bool place_arguments(const Layout& layout, PyObject* made, PyObject* const* arguments, std::size_t count,
                     PyObject* names) {
    if (count > layout.positional) return false;
    for (std::size_t place = 0; place < count; ++place)
        slot(made, layout.parameters[place]) = Py_NewRef(arguments[place]);
    const Py_ssize_t named_count = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t index = 0; index < named_count; ++index) {
        const std::size_t place = count + static_cast<std::size_t>(index);
        const Parameter* const parameter = named(layout, PyTuple_GET_ITEM(names, index), place);
        if (parameter == nullptr || slot(made, *parameter) != nullptr) return false;
        slot(made, *parameter) = Py_NewRef(arguments[place]);
    }
    return true;
}

/// Fills the slots of arguments that were left out; false when one must be
/// given, or with an error of Python.
bool fill_in(const Layout& layout, PyObject* made) {
    for (const Parameter& parameter : layout.parameters) {
        PyObject*& place = slot(made, parameter);
        if (place != nullptr) continue;
        if (parameter.fallback.is_valid()) {
            place = Py_NewRef(parameter.fallback.ptr());
        } else if (parameter.factory.is_valid()) {
            PyObject* const value = PyObject_CallNoArgs(parameter.factory.ptr());
            if (value == nullptr) return false;
            place = value;
        } else {
            return false;
        }
    }
    return true;
}

/// Calls the class as if it were not constructed here.
PyObject* call_in_python(PyObject* cls, PyObject* const* arguments, std::size_t count, PyObject* names) {
    const nb::object placed = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
    const nb::object by_name = nb::steal(PyDict_New());
    if (!placed.is_valid() || !by_name.is_valid()) return nullptr;
    for (std::size_t place = 0; place < count; ++place)
        PyTuple_SET_ITEM(placed.ptr(), static_cast<Py_ssize_t>(place), Py_NewRef(arguments[place]));
    const Py_ssize_t named_count = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t index = 0; index < named_count; ++index) {
        PyObject* const value = arguments[count + static_cast<std::size_t>(index)];
        if (PyDict_SetItem(by_name.ptr(), PyTuple_GET_ITEM(names, index), value) != 0) return nullptr;
    }
    return PyType_Type.tp_call(cls, placed.ptr(), by_name.ptr());
}

PyObject* construct(PyObject* cls, PyObject* const* arguments, std::size_t flagged, PyObject* names) {
    static PyObject* const post_init = PyUnicode_InternFromString("__post_init__");
    auto* const type = reinterpret_cast<PyTypeObject*>(cls);
    const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(flagged));
    const auto found = layouts().find(type);
    if (found == layouts().end()) return call_in_python(cls, arguments, count, names);
    const Layout& layout = found->second;
    nb::object made = nb::steal(type->tp_alloc(type, 0));
    if (!made.is_valid()) return nullptr;
    if (!place_arguments(layout, made.ptr(), arguments, count, names) || !fill_in(layout, made.ptr())) {
        return PyErr_Occurred() != nullptr ? nullptr : call_in_python(cls, arguments, count, names);
    }
    if (layout.has_post_init) {
        const nb::object done = nb::steal(PyObject_CallMethodNoArgs(made.ptr(), post_init));
        if (!done.is_valid()) return nullptr;
    }
    return made.release().ptr();
}

/// Where a slot lies in instances; -1 for what is no slot.
Py_ssize_t offset_of(const nb::object& cls, const nb::object& name) {
    const nb::object found = nb::getattr(cls, name, nb::none());
    if (!PyObject_TypeCheck(found.ptr(), &PyMemberDescr_Type)) return -1;
    return reinterpret_cast<PyMemberDescrObject*>(found.ptr())->d_member->offset;
}

/// True if `__init__` is generated, which a file of this name tells, and has
/// these parameters, and no others such as those of `InitVar`. One that is
/// inherited may have other defaults than the class.
bool are_all(const nb::object& cls, const Layout& layout) {
    PyObject* const own = reinterpret_cast<PyTypeObject*>(cls.ptr())->tp_dict;
    if (PyDict_GetItemString(own, "__init__") == nullptr) return false;
    const nb::object code = nb::getattr(nb::getattr(cls, "__init__"), "__code__", nb::none());
    if (code.is_none() || !code.attr("co_filename").equal(nb::str("<string>"))) return false;
    const auto count = nb::cast<std::size_t>(code.attr("co_argcount")) +
                       nb::cast<std::size_t>(code.attr("co_kwonlyargcount"));
    if (count != layout.parameters.size() + 1) return false;
    const nb::object names = code.attr("co_varnames");
    for (std::size_t place = 1; place < count; ++place) {
        if (!names[place].equal(layout.parameters[place - 1].name)) return false;
    }
    return true;
}

}  // namespace

void construct_natively(const nb::object& cls) {
    auto* const type = reinterpret_cast<PyTypeObject*>(cls.ptr());
    const nb::module_ dataclasses = nb::module_::import_("dataclasses");
    const nb::object missing = dataclasses.attr("MISSING");
    const auto known = [&missing](nb::object value) { return value.is(missing) ? nb::object() : value; };
    Layout layout;
    std::vector<Parameter> by_name_only;
    for (nb::handle field : dataclasses.attr("fields")(cls)) {
        Parameter parameter{field.attr("name"), offset_of(cls, field.attr("name")),
                            known(field.attr("default")), known(field.attr("default_factory"))};
        const bool is_set = nb::cast<bool>(field.attr("init"));
        const bool has_value = parameter.fallback.is_valid() || parameter.factory.is_valid();
        if (parameter.offset < 0 || (!is_set && has_value)) return;
        if (!is_set) continue;  // The class sets it after `__init__`.
        const bool last = nb::cast<bool>(field.attr("kw_only"));
        (last ? by_name_only : layout.parameters).push_back(std::move(parameter));
    }
    layout.positional = layout.parameters.size();
    for (Parameter& parameter : by_name_only)
        layout.parameters.push_back(std::move(parameter));
    if (type->tp_new != PyBaseObject_Type.tp_new || PyType_HasFeature(type, Py_TPFLAGS_IS_ABSTRACT)) return;
    // Only the `__init__` of a frozen class passes by a `__setattr__`.
    const bool is_frozen = nb::cast<bool>(cls.attr("__dataclass_params__").attr("frozen"));
    if (!is_frozen && type->tp_setattro != PyObject_GenericSetAttr) return;
    if (!are_all(cls, layout)) return;
    layout.has_post_init = nb::hasattr(cls, "__post_init__");
    layouts()[type] = std::move(layout);
    type->tp_vectorcall = construct;
}

}  // namespace trunkline::bindings
