#include "header_fields.hpp"

#include <structmember.h>

#include <optional>
#include <utility>

#include "objects.hpp"
#include "trunkline/wire/fields.hpp"

namespace trunkline::wire {

namespace {

/// What `sip.message.message` knows of header fields. Set when that is imported, and never freed.
struct Rules {
    /// `KNOWN_NAMES`, and the keys of fields whose value is a list.
    nb::object names, lists;
    /// Keys of fields that only the session sets, and of those of ours that an application may replace.
    nb::object owned_keys, replaceable;
    nb::object split_list, check_encodable, invalid_value;
    PyTypeObject* base = nullptr;
    /// What reads each attribute, and the key of its field.
    std::array<std::pair<nb::object, nb::object>, attribute_count> attributes;
};

Rules& rules() {
    static auto& all = *new Rules;
    return all;
}

constexpr std::array<const char*, attribute_count> attribute_names{"via", "from_", "to", "call_id", "cseq"};

nb::handle text_of(nb::handle value) {
    if (!PyUnicode_Check(value.ptr())) refuse(PyExc_TypeError, "names and values of header fields are text");
    return value;
}

bool is_in(nb::handle container, nb::handle item) {
    const int found = PySequence_Contains(container.ptr(), item.ptr());
    if (found < 0) nb::raise_python_error();
    return found == 1;
}

bool has(nb::handle text, Py_UCS4 character) {
    const Py_ssize_t size = PyUnicode_GET_LENGTH(text.ptr());
    return PyUnicode_FindChar(text.ptr(), character, 0, size, 1) >= 0;
}

bool same(PyObject* text, PyObject* other) {
    if (text == other) return true;
    if (!PyUnicode_Check(text) || PyUnicode_GET_LENGTH(text) != PyUnicode_GET_LENGTH(other)) return false;
    return PyUnicode_Compare(text, other) == 0;
}

/// Text without the spaces and tabs at both ends.
nb::object stripped(nb::handle text) {
    Py_ssize_t begin = 0, end = PyUnicode_GET_LENGTH(text.ptr());
    const auto is_space = [&text](Py_ssize_t place) {
        const Py_UCS4 character = PyUnicode_READ_CHAR(text.ptr(), place);
        return character == ' ' || character == '\t';
    };
    while (begin < end && is_space(begin))
        ++begin;
    while (begin < end && is_space(end - 1))
        --end;
    return owned(PyUnicode_Substring(text.ptr(), begin, end));
}

HeaderFields& of(PyObject* self) {
    return *reinterpret_cast<HeaderFields*>(self);
}

/// A list of entries, which Python can change: each is looked at before it is used.
class Entries {
  public:
    explicit Entries(HeaderFields& fields) : list_(fields.entries) {}

    Py_ssize_t size() const { return PyList_GET_SIZE(list_); }
    PyObject* key(Py_ssize_t place) const { return part(place, 0); }
    PyObject* name(Py_ssize_t place) const { return part(place, 1); }
    PyObject* value(Py_ssize_t place) const { return part(place, 2); }
    nb::handle entry(Py_ssize_t place) const { return PyList_GET_ITEM(list_, place); }

    /// The place of the first entry of a key from `place` on; the size without one.
    Py_ssize_t find(PyObject* wanted, Py_ssize_t place = 0) const {
        while (place < size() && !same(key(place), wanted))
            ++place;
        return place;
    }
    void append(nb::handle entry) {
        if (PyList_Append(list_, entry.ptr()) != 0) nb::raise_python_error();
    }
    void insert(Py_ssize_t place, nb::handle entry) {
        if (PyList_Insert(list_, place, entry.ptr()) != 0) nb::raise_python_error();
    }
    /// Remove all entries of a key from `place` on.
    void remove(PyObject* wanted, Py_ssize_t place) {
        while ((place = find(wanted, place)) < size()) {
            if (PyList_SetSlice(list_, place, place + 1, nullptr) != 0) nb::raise_python_error();
        }
    }
    void replace(Py_ssize_t place, nb::object entry) {
        if (PyList_SetItem(list_, place, entry.release().ptr()) != 0) nb::raise_python_error();
    }

  private:
    PyObject* part(Py_ssize_t place, Py_ssize_t index) const {
        PyObject* const entry = PyList_GET_ITEM(list_, place);
        if (!PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) != 3)
            refuse(PyExc_TypeError, "an entry is a tuple of key, name and value");
        return PyTuple_GET_ITEM(entry, index);
    }

    PyObject* list_;
};

/// Key and written form of a name in any spelling, and whether it is one of the known names.
struct Name {
    nb::object key, written;
    bool known = false;
};

Name identify(nb::handle name) {
    const auto known = [](nb::handle spelling) -> std::optional<Name> {
        PyObject* const found = PyDict_GetItemWithError(rules().names.ptr(), spelling.ptr());
        if (found == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
        if (found == nullptr) return std::nullopt;
        return Name{nb::borrow(PyTuple_GET_ITEM(found, 0)), nb::borrow(PyTuple_GET_ITEM(found, 1)), true};
    };
    if (auto found = known(text_of(name))) return std::move(*found);
    nb::object key = name.attr("lower")();
    if (auto found = known(key)) return std::move(*found);
    return {std::move(key), nb::borrow(name)};
}

/// Drop the typed view of a field that changes.
void forget(HeaderFields& fields, nb::handle key) {
    if (PyDict_GET_SIZE(fields.views) > 0) {
        const int held = PyDict_Contains(fields.views, key.ptr());
        if (held < 0 || (held == 1 && PyDict_DelItem(fields.views, key.ptr()) != 0)) nb::raise_python_error();
    }
    for (std::size_t index = 0; index < attribute_count; ++index) {
        if (fields.attributes[index] != nullptr && same(rules().attributes[index].first.ptr(), key.ptr()))
            Py_CLEAR(fields.attributes[index]);
    }
}

bool is_header_name(nb::handle name) {
    if (!PyUnicode_IS_ASCII(name.ptr())) return false;
    const auto* const data = reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(name.ptr()));
    return is_token({data, static_cast<std::size_t>(PyUnicode_GET_LENGTH(name.ptr()))});
}

/// The entry of a field that is added, after checking that it can be written and read back.
nb::object new_entry(HeaderFields& fields, nb::handle name, nb::handle value) {
    const Name found = identify(name);
    if (!found.known && !is_header_name(name)) {
        refuse(rules().invalid_value, "A header field name must be a token");
    }
    if (has(text_of(value), '\r') || has(value, '\n')) {
        refuse(rules().invalid_value, "A header field value must not hold a line end");
    }
    if (!PyUnicode_IS_ASCII(value.ptr())) rules().check_encodable(value);
    forget(fields, found.key);
    return owned(PyTuple_Pack(3, found.key.ptr(), found.written.ptr(), value.ptr()));
}

// Reading.

nb::object first(HeaderFields& fields, nb::handle key) {
    const Entries entries(fields);
    const Py_ssize_t place = entries.find(text_of(key).ptr());
    return place == entries.size() ? nb::none() : nb::borrow(entries.value(place));
}

nb::object all_of(HeaderFields& fields, nb::handle key) {
    const Entries entries(fields);
    nb::list found;
    text_of(key);
    for (Py_ssize_t place = entries.find(key.ptr()); place < entries.size();
         place = entries.find(key.ptr(), place + 1)) {
        found.append(nb::handle(entries.value(place)));
    }
    return found;
}

nb::object get(HeaderFields& fields, nb::handle name) {
    return first(fields, identify(name).key);
}

nb::object get_all(HeaderFields& fields, nb::handle name) {
    const nb::object key = identify(name).key;
    nb::object values = all_of(fields, key);
    if (!is_in(rules().lists, key)) return values;
    nb::list elements;
    for (nb::handle value : values) {
        if (has(text_of(value), ',')) {
            elements.extend(rules().split_list(value));
        } else if (nb::object element = stripped(value); PyUnicode_GET_LENGTH(element.ptr()) > 0) {
            elements.append(element);
        }
    }
    return elements;
}

nb::object items(HeaderFields& fields) {
    const Entries entries(fields);
    nb::object made = owned(PyList_New(entries.size()));
    for (Py_ssize_t place = 0; place < entries.size(); ++place) {
        PyList_SET_ITEM(made.ptr(), place,
                        owned(PyTuple_Pack(2, entries.name(place), entries.value(place))).release().ptr());
    }
    return made;
}

nb::object typed(HeaderFields& fields, nb::handle key, nb::handle parse) {
    PyObject* const held = PyDict_GetItemWithError(fields.views, key.ptr());
    if (held != nullptr && held != Py_None) return nb::borrow(held);
    if (PyErr_Occurred() != nullptr) nb::raise_python_error();
    const nb::handle self(reinterpret_cast<PyObject*>(&fields));
    nb::object value = parse(self, key);
    if (PyDict_SetItem(fields.views, key.ptr(), value.ptr()) != 0) nb::raise_python_error();
    return value;
}

// Changing.

nb::object add(HeaderFields& fields, nb::handle name, nb::handle value) {
    Entries(fields).append(new_entry(fields, name, value));
    return nb::none();
}

std::pair<nb::object, nb::object> pair_of(nb::handle field) {
    const nb::object pair = owned(PySequence_Tuple(field.ptr()));
    if (PyTuple_GET_SIZE(pair.ptr()) != 2) refuse(PyExc_ValueError, "a field is a pair of name and value");
    return {nb::borrow(PyTuple_GET_ITEM(pair.ptr(), 0)), nb::borrow(PyTuple_GET_ITEM(pair.ptr(), 1))};
}

nb::object extend(HeaderFields& fields, nb::handle added) {
    for (nb::handle field : added) {
        const auto [name, value] = pair_of(field);
        add(fields, name, value);
    }
    return nb::none();
}

nb::object set(HeaderFields& fields, nb::handle name, nb::handle value) {
    nb::object entry = new_entry(fields, name, value);
    const nb::object key = nb::borrow(PyTuple_GET_ITEM(entry.ptr(), 0));
    Entries entries(fields);
    const Py_ssize_t place = entries.find(key.ptr());
    if (place == entries.size()) {
        entries.append(entry);
    } else {
        entries.replace(place, std::move(entry));
        entries.remove(key.ptr(), place + 1);
    }
    return nb::none();
}

nb::object add_custom(HeaderFields& fields, nb::handle added) {
    for (nb::handle field : added) {
        const auto [name, value] = pair_of(field);
        const nb::object key = identify(name).key;
        if (is_in(rules().owned_keys, key)) {
            PyErr_Format(rules().invalid_value.ptr(), "The session itself sets the header field %U",
                         name.ptr());
            nb::raise_python_error();
        }
        is_in(rules().replaceable, key) ? set(fields, name, value) : add(fields, name, value);
    }
    return nb::none();
}

nb::object push_via(HeaderFields& fields, nb::handle value) {
    const auto& key = rules().attributes[static_cast<std::size_t>(Attribute::via)].first;
    const Name name = identify(key);
    Entries(fields).insert(0,
                           owned(PyTuple_Pack(3, name.key.ptr(), name.written.ptr(), text_of(value).ptr())));
    forget(fields, key);
    return nb::none();
}

nb::object remove(HeaderFields& fields, nb::handle name) {
    const nb::object key = identify(name).key;
    forget(fields, key);
    Entries(fields).remove(key.ptr(), 0);
    return nb::none();
}

nb::object copy_keys(HeaderFields& fields, nb::handle other, nb::handle keys) {
    if (!PyObject_TypeCheck(other.ptr(), rules().base)) {
        refuse(PyExc_TypeError, "header fields are copied from those of another message");
    }
    Entries entries(fields);
    if (entries.size() > 0) {  // A view is of an entry: an empty message, as of a reply, has none to drop.
        for (nb::handle key : keys)
            forget(fields, text_of(key));
    }
    const Entries copied(of(other.ptr()));
    // The number is that before the first is added: a message may be given itself.
    const Py_ssize_t count = copied.size();
    for (Py_ssize_t place = 0; place < count && place < copied.size(); ++place) {
        const nb::object entry = nb::borrow(copied.entry(place)), key = nb::borrow(copied.key(place));
        if (is_in(keys, key)) entries.append(entry);
    }
    return nb::none();
}

nb::object copy(HeaderFields& fields) {
    nb::object entries = owned(PyList_GetSlice(fields.entries, 0, PyList_GET_SIZE(fields.entries)));
    return make_header_fields(reinterpret_cast<PyObject*>(Py_TYPE(&fields)), std::move(entries),
                              owned(PyDict_Copy(fields.views)));
}

// The class.

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

/// Breaks cycles. Entries and views are never absent: methods may still be called.
int clear(PyObject* self) {
    HeaderFields& fields = of(self);
    if (fields.entries != nullptr &&
        PyList_SetSlice(fields.entries, 0, PyList_GET_SIZE(fields.entries), nullptr))
        PyErr_Clear();
    if (fields.views != nullptr) PyDict_Clear(fields.views);
    for (PyObject*& attribute : fields.attributes)
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
