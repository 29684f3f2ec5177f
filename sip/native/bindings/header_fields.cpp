#include "header_fields.hpp"

#include <structmember.h>

#include <utility>

#include "header_operations.hpp"
#include "objects.hpp"

namespace trunkline::wire {

using namespace headers;

namespace {

constexpr std::array<const char*, attribute_count> attribute_names{"via", "from_", "to", "call_id", "cseq"};

template <nb::object (*method)(HeaderFields&)>
PyObject* with_none(PyObject* self, PyObject*) {
    return guarded([self] { return method(of(self)); });
}

template <nb::object (*method)(HeaderFields&, nb::handle)>
PyObject* with_one(PyObject* self, PyObject* argument) {
    return guarded([self, argument] { return method(of(self), argument); });
}

template <nb::object (*method)(HeaderFields&, nb::handle, nb::handle)>
PyObject* with_two(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "two arguments are expected");
        return nullptr;
    }
    return guarded([self, arguments] { return method(of(self), arguments[0], arguments[1]); });
}

PyObject* from_entries(PyObject* cls, PyObject* entries) {
    if (!PyList_Check(entries)) {
        PyErr_SetString(PyExc_TypeError, "entries are a list");
        return nullptr;
    }
    return guarded([cls, entries] { return make_header_fields(cls, nb::borrow(entries), nb::dict()); });
}

PyObject* make_empty(PyTypeObject* type, PyObject*, PyObject*) {
    return guarded(
        [type] { return make_header_fields(reinterpret_cast<PyObject*>(type), nb::list(), nb::dict()); });
}

int initialise(PyObject* self, PyObject* arguments, PyObject* named) {
    static const char* names[] = {"fields", nullptr};
    PyObject* fields = nullptr;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "|O", const_cast<char**>(names), &fields)) return -1;
    if (fields == nullptr) return 0;
    PyObject* const done = with_one<extend>(self, fields);
    Py_XDECREF(done);
    return done == nullptr ? -1 : 0;
}

int contains(PyObject* self, PyObject* name) {
    PyObject* const found = with_one<get>(self, name);
    Py_XDECREF(found);
    return found == nullptr ? -1 : found != Py_None;
}

PyObject* read_attribute(PyObject* self, void* which) {
    const auto index = reinterpret_cast<std::size_t>(which);
    HeaderFields& fields = of(self);
    if (fields.attributes[index] == nullptr) {
        const auto& [key, parse] = rules().attributes[index];
        PyObject* const value = PyObject_CallFunctionObjArgs(parse.ptr(), self, key.ptr(), nullptr);
        if (value == nullptr) return nullptr;
        Py_XSETREF(fields.attributes[index], value);
    }
    return Py_NewRef(fields.attributes[index]);
}

int write_attribute(PyObject* self, PyObject* value, void* which) {
    Py_XSETREF(of(self).attributes[reinterpret_cast<std::size_t>(which)], Py_XNewRef(value));
    return 0;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    HeaderFields& fields = of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(fields.entries);
    Py_VISIT(fields.views);
    for (PyObject* attribute : fields.attributes)
        Py_VISIT(attribute);
    return 0;
}

/// Breaks cycles of the attributes. Entries and views, which may be asked for until the end, break their own.
int clear(PyObject* self) {
    for (PyObject*& attribute : of(self).attributes)
        Py_CLEAR(attribute);
    return 0;
}

void deallocate(PyObject* self) {
    PyObject_GC_UnTrack(self);
    HeaderFields& fields = of(self);
    Py_CLEAR(fields.entries);
    Py_CLEAR(fields.views);
    for (PyObject*& attribute : fields.attributes)
        Py_CLEAR(attribute);
    PyTypeObject* const type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

template <class Function>
PyCFunction as_method(Function* function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"first", with_one<first>, METH_O, nullptr},
    {"all_of", with_one<all_of>, METH_O, nullptr},
    {"get", with_one<get>, METH_O, nullptr},
    {"get_all", with_one<get_all>, METH_O, nullptr},
    {"items", with_none<items>, METH_NOARGS, nullptr},
    {"typed", as_method(with_two<typed>), METH_FASTCALL, nullptr},
    {"add", as_method(with_two<add>), METH_FASTCALL, nullptr},
    {"extend", with_one<extend>, METH_O, nullptr},
    {"add_custom", with_one<add_custom>, METH_O, nullptr},
    {"set", as_method(with_two<set>), METH_FASTCALL, nullptr},
    {"push_via", with_one<push_via>, METH_O, nullptr},
    {"remove", with_one<remove>, METH_O, nullptr},
    {"copy_keys", as_method(with_two<copy_keys>), METH_FASTCALL, nullptr},
    {"copy", with_none<copy>, METH_NOARGS, nullptr},
    {"from_entries", from_entries, METH_O | METH_CLASS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"entries", T_OBJECT_EX, offsetof(HeaderFields, entries), READONLY, nullptr},
    {"views", T_OBJECT_EX, offsetof(HeaderFields, views), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef* attributes() {
    static std::array<PyGetSetDef, attribute_count + 1> all{};
    for (std::size_t index = 0; index < attribute_count; ++index) {
        all[index] = {attribute_names[index], read_attribute, write_attribute, nullptr,
                      reinterpret_cast<void*>(index)};
    }
    return all.data();
}

void set_header_rules(const nb::dict& names, const nb::dict& keys, const nb::dict& helpers,
                      const nb::dict& attributes_by_name) {
    Rules& all = rules();
    all.names = names;
    all.lists = keys["list"];
    all.owned_keys = keys["owned"];
    all.replaceable = keys["replaceable"];
    all.split_list = helpers["list"];
    all.check_encodable = helpers["encodable"];
    all.invalid_value = helpers["error"];
    for (std::size_t index = 0; index < attribute_count; ++index) {
        const nb::object known = attributes_by_name[attribute_names[index]];
        all.attributes[index] = {nb::object(known[0]), nb::object(known[1])};
    }
}

}  // namespace

nb::object make_header_fields(nb::handle type, nb::object entries, nb::object views) {
    auto* const cls = reinterpret_cast<PyTypeObject*>(type.ptr());
    nb::object made = owned(cls->tp_alloc(cls, 0));
    of(made.ptr()).entries = entries.release().ptr();
    of(made.ptr()).views = views.release().ptr();
    return made;
}

nb::list entries_of(nb::handle headers) {
    if (!PyObject_TypeCheck(headers.ptr(), rules().base))
        refuse(PyExc_TypeError, "header fields are an instance of Headers");
    return nb::borrow<nb::list>(of(headers.ptr()).entries);
}

void define_header_fields(nb::module_& module) {
    PyType_Slot slots[] = {
        {Py_tp_new, reinterpret_cast<void*>(make_empty)},
        {Py_tp_init, reinterpret_cast<void*>(initialise)},
        {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
        {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
        {Py_tp_clear, reinterpret_cast<void*>(clear)},
        {Py_sq_contains, reinterpret_cast<void*>(contains)},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {Py_tp_getset, attributes()},
        {0, nullptr},
    };
    PyType_Spec spec{"sip._wire.HeaderFields", sizeof(HeaderFields), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    nb::object base = owned(PyType_FromSpec(&spec));
    rules().base = reinterpret_cast<PyTypeObject*>(base.ptr());
    module.attr("HeaderFields") = base;
    module.def("set_header_rules", &set_header_rules);
}

}  // namespace trunkline::wire
