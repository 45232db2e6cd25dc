-- A Lua program of the ordinary kind: trees built and folded, strings joined and matched, tables sorted.
local count = tonumber(arg[1])
local state = 42
local function draw(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % n
end

local function insert(tree, key)
    if not tree then return { key = key, count = 1 } end
    if key < tree.key then tree.left = insert(tree.left, key)
    elseif key > tree.key then tree.right = insert(tree.right, key)
    else tree.count = tree.count + 1 end
    return tree
end
local function fold(tree, visit)
    if tree then
        fold(tree.left, visit)
        visit(tree)
        fold(tree.right, visit)
    end
end

local names, sums = {}, {}
for _ = 1, 8 do
    local tree
    for number = 1, count do
        local name = "name-" .. draw(20000) .. "-" .. draw(10)
        tree = insert(tree, name)
        if number % 8 == 0 then names[#names % 5000 + 1] = name:gsub("%-", "/"):upper() end
    end
    local parts = {}
    fold(tree, function(node) parts[#parts + 1] = node.key .. "=" .. node.count end)
    table.sort(parts, function(a, b) return a > b end)
    local text = table.concat(parts, ";")
    local sum = 0
    for key, value in text:gmatch("([^=;]+)=(%d+)") do sum = sum + #key * tonumber(value) end
    sums[#sums + 1] = sum .. ":" .. #text
end
print(#names, table.concat(sums, " "))
