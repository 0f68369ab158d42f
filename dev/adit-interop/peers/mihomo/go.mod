module mihomo

go 1.26

require github.com/metacubex/mihomo v1.19.20
